// A theme: its memories, turns, conversations, history, and what is hidden; and a conversation as it was said.
import type { EventRow, HiddenRule, Listed, Session, SessionRow, ThemeRow } from "./api";
import { forget, show, type Ask } from "./change";
import { useLoad } from "./load";
import { Empty, Fact, More, Origin, Pages, Stored, Time, Trouble, Waiting } from "./parts";
import { to, type Place } from "./place";
import { Events, RowButtons, Rows } from "./rows";
import { SessionList } from "./home";
import { count, counted } from "./words";
import { h, useEffect, useRef, useState } from "./sdk";

const MANY = 100;
const TABS: [string, string][] = [["memories", "Memories"], ["turns", "Turns"], ["sessions", "Conversations"], ["events", "History"], ["hidden", "Hidden"]];

export function ThemeView({ place, ask, version }: { place: Place; ask: Ask; version: number }) {
  const theme = place.theme ?? "";
  const tab = place.tab ?? "memories";
  const found = useLoad<Listed<ThemeRow>>("list", { what: "themes", theme }, { every: 15000, version });
  if (found.error && !found.data) return <Trouble error={found.error}><p><a href={to({})}>All themes</a></p></Trouble>;
  const known = found.data?.rows[0];
  return (
    <section className="pgv-card">
      <div className="pgv-head">
        <h2 className="pgv-h2"><Stored text={theme} /></h2>
        <button type="button" className="pgv-button" onClick={() => ask(forget({ theme }, "this theme", theme))}>Forget the theme…</button>
      </div>
      {known ? (
        <dl className="pgv-facts">
          <Fact name="Memories">{count(known.memories)}</Fact>
          <Fact name="Turns">{count(known.turns)}</Fact>
          <Fact name="Last write"><Time at={known.last_write} /></Fact>
          <Fact name="Last recall"><Time at={known.last_recall} /></Fact>
          {known.is_private ? <Fact name="Seen by">only itself: it is private</Fact> : null}
        </dl>
      ) : null}
      <nav className="pgv-tabs" aria-label="Parts of this theme">
        {TABS.map(([value, name]) => <a key={value} href={to({ view: "theme", theme, tab: value })} aria-current={value === tab ? "page" : undefined}>{name}</a>)}
      </nav>
      <Tab key={`${tab} ${version}`} tab={tab} theme={theme} ask={ask} />
    </section>
  );
}

function Tab({ tab, theme, ask }: { tab: string; theme: string; ask: Ask }) {
  const query = { what: tab, theme };
  if (tab === "sessions") return <Pages<SessionRow> query={query} what="the conversations" empty={<Empty title="No conversations" />}>{(rows) => <SessionList sessions={rows} />}</Pages>;
  if (tab === "events") return <Pages<EventRow> query={query} what="the history" empty={<Empty title="No history"><p>What happens to memories is kept here, and can be undone.</p></Empty>}>{(rows) => <Events events={rows} ask={ask} />}</Pages>;
  if (tab === "hidden") return <Pages<HiddenRule> query={query} what="what is hidden" empty={<Empty title="Nothing is hidden"><p>A hidden row is kept, and recall does not find it.</p></Empty>}>{(rows) => <Hidden rules={rows} ask={ask} />}</Pages>;
  return <Rows query={query} ask={ask} empty={tab === "turns" ? "No turns: what is said in a chat of this theme appears here" : "No memories: agents save them with their memory tool"} />;
}

function Hidden({ rules, ask }: { rules: HiddenRule[]; ask: Ask }) {
  return (
    <ul className="pgv-rows">
      {rules.map((each) => (
        <li key={each.id} className="pgv-row">
          <p className="pgv-hit-head">
            <span>rule {each.id}</span><strong>{each.rule}</strong><span>by {each.actor}</span><Time at={each.at} /><span>{each.what}</span>
            <span>{[each.turns ? counted(each.turns, "turn") : "", each.memories ? counted(each.memories, "memory", "memories") : ""].filter(Boolean).join(", ")}</span>
            <button type="button" className="pgv-plain" onClick={() => ask(show(String(each.id), `Bring back what rule ${each.id} hides?`))}>Bring back…</button>
          </p>
          {each.reason ? <p className="pgv-faint"><Stored text={each.reason} /></p> : null}
          {each.content ? <p className="pgv-text"><Stored text={each.content} /></p> : null}
        </li>
      ))}
    </ul>
  );
}

export function SessionView({ place, ask }: { place: Place; ask: Ask }) {
  const session = place.session ?? "";
  const [limit, setLimit] = useState(MANY);
  const found = useLoad<Session>("show", { name: session, theme: place.theme }, { limit });
  const linked = useRef<HTMLLIElement>(null);
  useEffect(() => linked.current?.scrollIntoView?.({ block: "center" }), [Boolean(found.data)]);
  if (found.error && !found.data) return <Trouble error={found.error}><p><a href={to({})}>Back to the memories</a></p></Trouble>;
  if (!found.data) return <Waiting what="the conversation" />;
  const { agent_identity: theme, works_for: above, delegated_to: below, turns, next } = found.data;
  const link = (name: string) => <a key={name} className="pgv-item" href={to({ view: "session", session: name })}><Stored text={name} /></a>;
  return (
    <section className="pgv-card">
      <div className="pgv-head">
        <h2 className="pgv-h2"><a href={to({ view: "theme", theme, tab: "sessions" })}><Stored text={theme} /></a> / <Stored text={session} /></h2>
        <button type="button" className="pgv-button" onClick={() => ask(forget({ session, theme }, "this conversation"))}>Forget the conversation…</button>
      </div>
      {above.length ? <p>Worked for {above.map(link)}</p> : null}
      {below.length ? <p>Gave work to {below.map((each) => link(each.child_session_id))}</p> : null}
      <ol className="pgv-transcript">
        {turns.map((turn) => (
          <li key={turn.id} ref={turn.id === place.turn ? linked : null} className={`pgv-said pgv-said-${turn.role} ${turn.id === place.turn ? "pgv-row-linked" : ""}`}>
            <p className="pgv-hit-head"><strong>{turn.role}</strong><Time at={turn.ts} full /><a href={to({ view: "row", id: turn.id })}>{turn.id}</a>{turn.hidden_by ? <strong>hidden</strong> : null}<Origin origin="" untrusted={turn.untrusted} /></p>
            <p className="pgv-text"><Stored text={turn.content} /></p>
            <RowButtons row={{ id: turn.id, kind: "turn", content: turn.content, hidden_by: turn.hidden_by }} ask={ask} />
          </li>
        ))}
      </ol>
      <More error={found.error} onMore={next && (() => setLimit(limit + MANY))} />
    </section>
  );
}
