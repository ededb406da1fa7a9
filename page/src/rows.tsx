// Memories and turns: lists with a choice of several, and everything about one of them.
import { change, type Added, type EventRow, type Listed, type Refusal, type Row, type Shown, type ThemeRow } from "./api";
import { edit, forget, hide, show, undo, type Ask } from "./change";
import { useLoad } from "./load";
import { Dialog, Empty, Fact, Origin, Pages, Read, Stored, Time, Trouble } from "./parts";
import { to } from "./place";
import { count, counted } from "./words";
import { Fragment, h, useState, type FormEvent, type Props } from "./sdk";

const SHORT = 400;
const FILES: Record<string, string> = { memory: "MEMORY.md", user: "USER.md" };

export const whose = (row: { kind: string; whose: string }) => (row.kind === "memory" ? FILES[row.whose] ?? row.whose : row.whose);

/** A page of rows after the other, and what can be done with those that are chosen. */
export function Rows({ query, ask, empty }: { query: Record<string, string>; ask: Ask; empty: string }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const turn = (id: string) => setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  return (
    <Pages<Row> query={query} what="the rows" empty={<Empty title={empty} />}>
      {(rows) => (
        <Fragment>
          {chosen.length ? (
            <div className="pgv-chosen" role="toolbar" aria-label="What to do with the chosen rows">
              <strong role="status">{counted(chosen.length, "row")} chosen</strong>
              <button type="button" className="pgv-button" onClick={() => ask(hide(chosen))}>Hide…</button>
              <button type="button" className="pgv-button" onClick={() => ask(forget({ ids: chosen }, counted(chosen.length, "row")))}>Forget…</button>
              <button type="button" className="pgv-plain" onClick={() => setChosen([])}>Choose none</button>
            </div>
          ) : null}
          <ul className="pgv-rows">{rows.map((row) => <RowLine key={row.id} row={row} ask={ask} chosen={chosen.includes(row.id)} onChoose={() => turn(row.id)} />)}</ul>
        </Fragment>
      )}
    </Pages>
  );
}

export function RowLine({ row, ask, chosen, onChoose }: { row: Row; ask: Ask; chosen?: boolean; onChoose?: () => void }) {
  return (
    <li className="pgv-row">
      <p className="pgv-hit-head">
        {onChoose ? <input type="checkbox" checked={chosen} onChange={onChoose} aria-label={`Choose ${row.id}`} /> : null}
        <a href={to({ view: "row", id: row.id })}>{row.id}</a>
        <span className="pgv-tag">{whose(row)}</span>
        <a href={to({ view: "theme", theme: row.agent_identity })}><Stored text={row.agent_identity} /></a>
        <Time at={row.ts} />
        <Origin origin={row.origin} untrusted={row.untrusted} />
        {row.hidden_by ? <strong>hidden</strong> : null}
      </p>
      <p className="pgv-text">
        <Stored text={row.content.slice(0, SHORT)} />
        {row.content.length > SHORT ? <Fragment> … <a href={to({ view: "row", id: row.id })}>{count(row.content.length - SHORT)} more characters</a></Fragment> : null}
      </p>
      <RowButtons row={row} ask={ask} />
    </li>
  );
}

export function RowButtons({ row, ask, children }: Props<{ row: { id: string; kind: string; content: string; hidden_by?: number | null; session_id?: string | null }; ask: Ask }>) {
  const [isEditing, setEditing] = useState(false);
  return (
    <div className="pgv-hit-foot">
      {children}
      {row.session_id && row.kind === "turn" ? <a href={to({ view: "session", session: row.session_id, turn: row.id })}>Open the conversation</a> : null}
      {row.kind === "memory" ? <button type="button" className="pgv-plain" onClick={() => setEditing(true)}>Edit…</button> : null}
      <button type="button" className="pgv-plain" onClick={() => ask(row.hidden_by ? show(row.id, `Bring ${row.id} back?`) : hide([row.id]))}>{row.hidden_by ? "Bring back…" : "Hide…"}</button>
      <button type="button" className="pgv-plain" onClick={() => ask(forget({ ids: [row.id] }, row.id))}>Forget…</button>
      {isEditing ? <EditDialog row={row} onClose={() => setEditing(false)} onText={(text) => { setEditing(false); ask(edit(row.id, text)); }} /> : null}
    </div>
  );
}

function EditDialog({ row, onClose, onText }: { row: { id: string; content: string }; onClose: () => void; onText: (text: string) => void }) {
  const [text, setText] = useState(row.content);
  return (
    <Dialog title={`Edit ${row.id}`} onClose={onClose}>
      <label className="pgv-field pgv-field-wide"><span>Text</span><textarea className="pgv-input pgv-area" value={text} onChange={(event: any) => setText(event.target.value)} /></label>
      <p className="pgv-buttons">
        <button type="button" className="pgv-button" onClick={onClose}>Leave it</button>
        <button type="button" className="pgv-button pgv-button-main" disabled={!text.trim() || text === row.content} onClick={() => onText(text)}>See what changes…</button>
      </p>
    </Dialog>
  );
}

/** Puts a fact in, at once. */
export function AddDialog({ theme, onClose, onDone }: { theme: string; onClose: () => void; onDone: (said: string) => void }) {
  const [text, setText] = useState("");
  const [where, setWhere] = useState(theme);
  const [target, setTarget] = useState("memory");
  const [error, setError] = useState<Refusal | null>(null);
  const [busy, setBusy] = useState(false);
  const themes = useLoad<Listed<ThemeRow>>("list", { what: "themes", limit: 200 });
  const add = (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    change<Added>("add", { text, target, theme: where.trim() }).then((added) => onDone(added.notes[0]?.text ?? "Added."), (refusal: Refusal) => { setError(refusal); setBusy(false); });
  };
  return (
    <Dialog title="Add a memory" onClose={onClose}>
      <form onSubmit={add} className="pgv-plan">
        <label className="pgv-field pgv-field-wide"><span>What to remember</span><textarea className="pgv-input pgv-area" value={text} onChange={(event: any) => setText(event.target.value)} autoFocus /></label>
        <div className="pgv-fields">
          <label className="pgv-field"><span>Theme</span><input className="pgv-input" value={where} onChange={(event) => setWhere(event.target.value)} list="pgv-theme-names" spellCheck={false} /><datalist id="pgv-theme-names">{themes.data?.rows.map((each) => <option key={each.theme} value={each.theme} />)}</datalist></label>
          <label className="pgv-field"><span>About</span><select className="pgv-select" value={target} onChange={(event: any) => setTarget(event.target.value)}><option value="memory">the work</option><option value="user">the user</option></select></label>
        </div>
        {error ? <Trouble error={error} said="It was not added." /> : null}
        <p className="pgv-buttons">
          <button type="button" className="pgv-button" onClick={onClose}>Leave it</button>
          <button type="submit" className="pgv-button pgv-button-main" disabled={!text.trim() || !where.trim() || busy}>{busy ? "Adding…" : "Add"}</button>
        </p>
      </form>
    </Dialog>
  );
}

export function RowView({ id, ask }: { id: string; ask: Ask }) {
  const back = <p><a href={to({})}>Back to the memories</a></p>;
  return <Read found={useLoad<Shown>("show", { name: id })} what={id} back={back}>{(row) => <OneRow row={row} ask={ask} />}</Read>;
}

function OneRow({ row, ask }: { row: Shown; ask: Ask }) {
  return (
    <section className="pgv-card">
      <div className="pgv-head"><h2 className="pgv-h2">{row.kind === "memory" ? "Memory" : "Turn"} {row.id}</h2></div>
      <dl className="pgv-facts">
        <Fact name="Theme"><a href={to({ view: "theme", theme: row.agent_identity })}><Stored text={row.agent_identity} /></a></Fact>
        <Fact name={row.kind === "memory" ? "File" : "Said by"}>{row.target ? FILES[row.target] ?? row.target : row.role}</Fact>
        <Fact name={row.kind === "memory" ? "Changed" : "Said"}><Time at={row.updated_at ?? row.ts ?? null} full /></Fact>
        <Fact name="Vector">{row.vector.state}</Fact>
        {row.hidden_by ? <Fact name="Hidden by rule">{row.hidden_by}</Fact> : null}
        <Fact name="Comes from"><Origin origin={row.origin} untrusted={row.untrusted} /></Fact>
      </dl>
      <p className="pgv-text"><Stored text={row.content} /></p>
      <RowButtons row={row} ask={ask} />
      {row.history?.length ? <Fragment><h3 className="pgv-h3">History</h3><Events events={[...row.history].reverse()} ask={ask} /></Fragment> : null}
    </section>
  );
}

const DONE: Record<string, string> = { add: "added", replace: "changed", remove: "removed" };

export function Events({ events, ask }: { events: EventRow[]; ask: Ask }) {
  return (
    <ol className="pgv-rows">
      {events.map((event) => (
        <li key={event.id} className="pgv-row">
          <p className="pgv-hit-head">
            <span>{event.id}</span>
            <strong>{DONE[event.action] ?? event.action}</strong>
            <span>by {event.by}</span>
            <Time at={event.ts} />
            {event.session_id ? <a href={to({ view: "session", session: event.session_id })}>in a conversation</a> : null}
            <button type="button" className="pgv-plain" onClick={() => ask(undo(event.id))} aria-label={`Undo ${event.id}`}>Undo…</button>
          </p>
          {event.old_text ? <p className="pgv-text pgv-before"><Stored text={event.old_text} /></p> : null}
          {event.content ? <p className="pgv-text"><Stored text={event.content} /></p> : null}
        </li>
      ))}
    </ol>
  );
}
