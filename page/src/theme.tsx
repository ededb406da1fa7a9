// One theme: what it holds, what happened to it, and what can be done about it.
import type { Day, Edge, HistoryEvent, Row, Said, SessionRow, Shown, Theme, Transcript } from "./api";
import { Change, countsIn, type Done, type Wanted } from "./change";
import { Charts } from "./charts";
import { Graph } from "./graph";
import { useLoad, usePages } from "./load";
import { Empty, Fact, More, ORIGIN_CHOICES, Origin, Pair, Stored, Time, Trouble, Waiting } from "./parts";
import { to, type Place } from "./place";
import { count, counted, signed } from "./words";
import { Card, CardContent, CardHeader, CardTitle, Fragment, h, useEffect, useRef, useState } from "./sdk";

const TABS: [string, string][] = [["memories", "Memories"], ["sessions", "Sessions"], ["turns", "Turns"], ["delegations", "Delegations"], ["history", "History"], ["hidden", "Hidden"]];

export type Ask = (wanted: Wanted) => void;

export function ThemeView({ place }: { place: Place }) {
  const name = place.theme ?? "";
  const tab = TABS.some(([value]) => value === place.tab) ? place.tab! : "memories";
  const theme = useLoad<Theme>("theme", { theme: name }, { every: 10_000 });
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const [done, setDone] = useState<Done | null>(null);
  const [version, setVersion] = useState(0);
  const finish = (what: Done) => {
    setWanted(null);
    setDone(what);
    setVersion(version + 1);
    theme.reload();
  };
  const isGone = theme.error?.status === 404;
  return (
    <div className="pgv-stack">
      <p className="pgv-crumbs"><a href={to({})}>All themes</a></p>
      {done ? <DoneLine done={done} onUndo={setWanted} onClose={() => setDone(null)} /> : null}
      {theme.error && (isGone || !theme.data) ? (isGone && (done || theme.data) ? <Empty title="Nothing is left of this theme"><p>It has been forgotten, or given another name. <a href={to({})}>All themes</a></p></Empty> : <Trouble error={theme.error} reload={theme.reload} />) : (
        <Fragment>
          <Head name={name} theme={theme.data} ask={setWanted} />
          <nav className="pgv-tabs" aria-label="Parts of the theme">
            {TABS.map(([value, text]) => <a key={value} href={to({ view: "theme", theme: name, tab: value })} aria-current={value === tab ? "page" : undefined}>{text}</a>)}
          </nav>
          <Card>
            <CardContent className="pgv-tab">
              <Tab key={`${name} ${tab} ${version}`} tab={tab} place={place} name={name} ask={setWanted} />
            </CardContent>
          </Card>
        </Fragment>
      )}
      {wanted ? <Change wanted={wanted} theme={name} onClose={() => setWanted(null)} onDone={finish} /> : null}
    </div>
  );
}

function DoneLine({ done, onUndo, onClose }: { done: Done; onUndo: Ask; onClose: () => void }) {
  return (
    <div className="pgv-note pgv-done">
      <p role="status">{done.said}</p>
      <p className="pgv-buttons">
        {done.event ? <button type="button" className="pgv-button" onClick={() => onUndo(undoing(done.event!))}>Undo</button> : null}
        <button type="button" className="pgv-plain" onClick={onClose}>Close</button>
      </p>
    </div>
  );
}

function undoing(event: string): Wanted {
  return {
    title: `Undo ${event}?`,
    ways: [{
      name: "undo", body: { event }, label: "Undo", verb: "Undo it", explains: "Puts back what this event changed. Undoing is an event of its own, and can be undone.",
      done: (plan) => `Undone: ${counted(plan.remove?.length ?? 0, "memory", "memories")} removed, ${plan.restore?.length ?? 0} put back.`,
    }],
  };
}

function forgetting(row: { name: string; kind: "memory" | "turn" }): Wanted {
  const erase: Wanted["ways"][number] = {
    name: "forget", body: { what: "row", name: row.name }, label: "Erase it for good", dangerous: true, verb: "Erase for good",
    explains: "From the rows, its history, the journal and the vectors. This cannot be undone.",
    done: (plan) => `Erased: ${countsIn(plan.counts ?? {})}. Receipt ${plan.receipt}.`,
  };
  const take: Wanted["ways"][number] = {
    name: "remove", body: { name: row.name }, label: "Take it out", verb: "Take it out",
    explains: "Recall no longer finds it; the history keeps it, and you can undo this.",
    done: (plan) => `Forgotten: ${counted(plan.remove?.length ?? 0, "memory", "memories")} taken out.`,
  };
  return { title: `Forget ${row.name}?`, ways: row.kind === "memory" ? [take, erase] : [erase] };
}

const forgettingAll = (what: "session" | "theme", name: string): Wanted => ({
  title: what === "theme" ? "Forget this whole theme?" : "Forget this session?",
  ways: [{
    name: "forget", body: what === "theme" ? { what } : { what, session: name }, label: "Erase", dangerous: true, verb: "Erase for good",
    explains: what === "theme" ? "Erases everything of this theme from the rows, the history, the journal and the vectors. This cannot be undone." : "Erases everything of this session, and the memories written in it. This cannot be undone.",
    done: (plan) => `Erased: ${countsIn(plan.counts ?? {})}. Receipt ${plan.receipt}.`,
  }],
  ...(what === "theme" ? { typed: name } : {}),
});

const hiding = (row: { name: string; hidden_by: number | null }): Wanted => ({
  title: row.hidden_by ? `Let recall find ${row.name} again?` : `Hide ${row.name}?`,
  ways: [{
    name: "mute", body: row.hidden_by ? { undo: row.name } : { ids: [row.name] }, label: "Hide", verb: row.hidden_by ? "Bring it back" : "Hide it",
    explains: row.hidden_by ? "It gets its words and vectors back." : "It is kept, and recall no longer finds it, until somebody brings it back.",
    done: () => (row.hidden_by ? `Recall finds ${row.name} again.` : `${row.name} is hidden.`),
  }],
});

function Head({ name, theme, ask }: { name: string; theme: Theme | null; ask: Ask }) {
  const activity = useLoad<{ days: Day[] }>("activity", { theme: name }, { every: 30_000 });
  return (
    <Card>
      <CardHeader className="pgv-head">
        <CardTitle><Stored text={name} /></CardTitle>
        <span className="pgv-buttons">
          <a className="pgv-button" href={to({ view: "search", theme: name })}>Search it</a>
          <button type="button" className="pgv-button" onClick={() => ask(forgettingAll("theme", name))}>Forget the theme…</button>
        </span>
      </CardHeader>
      <CardContent>
        {theme ? (
          <dl className="pgv-facts">
            <Fact name="Memories">{count(theme.memories)}</Fact>
            <Fact name="Turns">{count(theme.turns)}</Fact>
            <Fact name="This week">{signed(theme.new_this_week)}</Fact>
            <Fact name="Last write"><Time at={theme.last_write} /></Fact>
            <Fact name="Last recall"><Time at={theme.last_recall} /></Fact>
            <Fact name="Homes">{theme.homes.length ? theme.homes.map((home) => home.slice(0, 8)).join(", ") : "none"}</Fact>
            {theme.is_private ? <Fact name="Seen by">only itself: it is private</Fact> : null}
          </dl>
        ) : <Waiting what="the theme" />}
        {activity.data ? <Charts days={activity.data.days} /> : null}
      </CardContent>
    </Card>
  );
}

function Tab({ tab, place, name, ask }: { tab: string; place: Place; name: string; ask: Ask }) {
  if (tab === "sessions") return place.session ? <TranscriptView name={name} session={place.session} turn={place.turn ?? ""} ask={ask} /> : <Sessions name={name} />;
  if (tab === "delegations") return <Delegations name={name} />;
  if (tab === "history") return <History name={name} ask={ask} />;
  const kind = tab === "memories" ? "memory" : tab === "turns" ? "turn" : "hidden";
  return <RowList name={name} kind={kind} ask={ask} open={place.row ?? ""} />;
}

const NONE: Record<string, [string, string]> = {
  memory: ["No memories", "Agents save them with their memory tool, or in MEMORY.md and USER.md."],
  turn: ["No turns", "What is said in a chat of this theme appears here."],
  hidden: ["Nothing is hidden", "A hidden row is kept, and recall does not find it."],
};

function RowList({ name, kind, ask, open }: { name: string; kind: "memory" | "turn" | "hidden"; ask: Ask; open: string }) {
  const [origin, setOrigin] = useState("");
  const rows = usePages<Row>("rows", { theme: name, kind, origin }, (document) => document.rows);
  if (rows.error && !rows.data) return <Trouble error={rows.error} reload={rows.reload} />;
  if (!rows.data) return <Waiting what="the rows" />;
  const isListed = rows.data.some((row) => row.name === open);
  return (
    <Fragment>
      {kind === "hidden" ? null : (
        <label className="pgv-field"><span>Origin</span>
          <select className="pgv-select" value={origin} onChange={(event) => setOrigin(event.target.value)}>{ORIGIN_CHOICES.map(([value, text]) => <option key={value} value={value}>{text}</option>)}</select>
        </label>
      )}
      {open && !isListed ? <ul className="pgv-rows"><Single name={open} theme={name} ask={ask} /></ul> : null}
      {rows.data.length ? <ul className="pgv-rows">{rows.data.map((row) => <RowLine key={row.name} row={row} ask={ask} open={row.name === open} />)}</ul> : <Empty title={origin ? "None of that origin" : NONE[kind]![0]}><p>{origin ? "Choose another origin, or any." : NONE[kind]![1]}</p></Empty>}
      {rows.error ? <Trouble error={rows.error} /> : null}
      <More more={rows.more} busy={rows.busy} />
    </Fragment>
  );
}

/** A memory that was linked to and is not on the first page. */
function Single({ name, theme, ask }: { name: string; theme: string; ask: Ask }) {
  const shown = useLoad<Shown>("row", { name, theme });
  if (shown.error) return <li><Trouble error={shown.error} /></li>;
  if (!shown.data) return <li><Waiting what={name} /></li>;
  const { row, kind } = shown.data;
  const line: Row = {
    name, kind, theme, at: row.updated_at ?? row.at ?? "", target: row.target ?? null, session_id: row.session_id ?? null,
    role: row.role ?? null, hidden_by: row.hidden_by, origin: row.origin ?? "", trust: row.trust ?? null, content: row.content, left_out: row.left_out,
  };
  return <RowLine row={line} ask={ask} open />;
}

export function RowLine({ row, ask, open: opened }: { row: Row; ask: Ask; open: boolean }) {
  const [open, setOpen] = useState(opened);
  const line = useRef<HTMLLIElement>(null);
  useEffect(() => { if (opened) line.current?.scrollIntoView?.({ block: "nearest" }); }, [opened]);
  const isMemory = row.kind === "memory";
  return (
    <li ref={line} className={`pgv-row ${opened ? "pgv-row-linked" : ""}`}>
      <p className="pgv-hit-head">
        <span className="pgv-tag">{isMemory ? (row.target === "user" ? "USER.md" : "MEMORY.md") : row.role}</span>
        <Time at={row.at} />
        <Origin origin={row.origin} trust={row.trust} />
        <span className="pgv-faint">{row.name}</span>
        {row.hidden_by ? <strong>hidden</strong> : null}
      </p>
      <p className="pgv-text"><Stored text={row.content} />{row.left_out ? <span className="pgv-faint"> … {count(row.left_out)} more characters</span> : null}</p>
      <div className="pgv-hit-foot">
        <button type="button" className="pgv-plain" aria-expanded={open} onClick={() => setOpen(!open)}>{isMemory ? "History and origin" : "Details"}</button>
        {row.session_id ? <a href={to({ view: "theme", theme: row.theme, tab: "sessions", session: row.session_id, turn: row.name })}>Open the session</a> : null}
        <button type="button" className="pgv-plain" onClick={() => ask(hiding(row))}>{row.hidden_by ? "Bring back…" : "Hide…"}</button>
        <button type="button" className="pgv-plain" onClick={() => ask(forgetting(row))}>Forget…</button>
      </div>
      {open ? <Details name={row.name} theme={row.theme} ask={ask} /> : null}
    </li>
  );
}

function Details({ name, theme, ask }: { name: string; theme: string; ask: Ask }) {
  const shown = useLoad<Shown>("row", { name, theme });
  if (shown.error) return <Trouble error={shown.error} reload={shown.reload} />;
  if (!shown.data) return <Waiting what={name} />;
  const { row, vectors, model, history, kind } = shown.data;
  const homes = Object.entries(row.homes ?? {});
  return (
    <div className="pgv-why">
      <dl className="pgv-pairs">
        {row.created_at ? <Pair name="First stored"><Time at={row.created_at} full /></Pair> : null}
        {row.session_id ? <Pair name="Session"><Stored text={row.session_id} /></Pair> : null}
        <Pair name="Found by">{vectors ? `meaning and words: ${counted(vectors, "vector")} of ${model}` : row.hidden_by ? `nobody: rule ${row.hidden_by} hides it` : "words only, so far: it has no vector"}</Pair>
        {kind === "memory" ? <Pair name="Held by">{homes.length ? homes.map(([home, origin]) => `home ${home.slice(0, 8)}, by its ${origin}`).join("; ") : "no home: an operator put it back"}</Pair> : null}
      </dl>
      {row.left_out || row.content.length > 700 ? <p className="pgv-text pgv-whole"><Stored text={row.content} /></p> : null}
      {history.length ? <Events events={[...history].reverse()} ask={ask} /> : null}
    </div>
  );
}

const ACTIONS: Record<string, string> = { add: "added", replace: "changed", remove: "removed" };

function Events({ events, ask }: { events: HistoryEvent[]; ask: Ask }) {
  return (
    <ol className="pgv-events">
      {events.map((event) => (
        <li key={event.event} className="pgv-event">
          <p className="pgv-hit-head">
            <strong>{ACTIONS[event.action] ?? event.action}</strong>
            <span>by {event.by}</span>
            <Time at={event.at} />
            <span className="pgv-faint">{event.event}{event.home_id ? `, home ${event.home_id.slice(0, 8)}` : ""}</span>
            {event.session_id ? <a href={to({ view: "theme", theme: event.theme, tab: "sessions", session: event.session_id })}>in a session</a> : null}
            <button type="button" className="pgv-plain" onClick={() => ask(undoing(event.event))} aria-label={`Undo ${event.event}`}>Undo…</button>
          </p>
          {event.before ? <p className="pgv-text pgv-before"><span className="pgv-faint">before: </span><Stored text={event.before} /></p> : null}
          {event.content ? <p className="pgv-text"><Stored text={event.content} /></p> : null}
        </li>
      ))}
    </ol>
  );
}

function History({ name, ask }: { name: string; ask: Ask }) {
  const events = usePages<HistoryEvent>("history", { theme: name }, (document) => document.events);
  if (events.error && !events.data) return <Trouble error={events.error} reload={events.reload} />;
  if (!events.data) return <Waiting what="the history" />;
  if (!events.data.length) return <Empty title="No history"><p>What happens to memories is kept here, and can be undone.</p></Empty>;
  return (
    <Fragment>
      <Events events={events.data} ask={ask} />
      <More more={events.more} busy={events.busy} />
    </Fragment>
  );
}

function Sessions({ name }: { name: string }) {
  const sessions = usePages<SessionRow>("sessions", { theme: name }, (document) => document.sessions);
  if (sessions.error && !sessions.data) return <Trouble error={sessions.error} reload={sessions.reload} />;
  if (!sessions.data) return <Waiting what="the sessions" />;
  if (!sessions.data.length) return <Empty title="No sessions"><p>A chat of this theme appears here as soon as something is said.</p></Empty>;
  return (
    <Fragment>
      <ul className="pgv-rows">
        {sessions.data.map((session) => (
          <li key={session.session_id} className="pgv-row">
            <p className="pgv-hit-head">
              <a href={to({ view: "theme", theme: name, tab: "sessions", session: session.session_id })}><Stored text={session.session_id} /></a>
              <span>{counted(session.turns, "turn")}</span>
              <Time at={session.last} />
              {session.delegations ? <span>{counted(session.delegations, "delegation")}</span> : null}
            </p>
            <p className="pgv-text pgv-faint"><Stored text={session.begins_with} /></p>
          </li>
        ))}
      </ul>
      <More more={sessions.more} busy={sessions.busy} />
    </Fragment>
  );
}

function TranscriptView({ name, session, turn, ask }: { name: string; session: string; turn: string; ask: Ask }) {
  const first = useLoad<Transcript>("transcript", { theme: name, session, turn });
  const turns = usePages<Said>("transcript", { theme: name, session, turn }, (document) => document.turns);
  const linked = useRef<HTMLLIElement>(null);
  useEffect(() => linked.current?.scrollIntoView?.({ block: "center" }), [Boolean(turns.data)]);
  if (turns.error && !turns.data) return <Trouble error={turns.error} reload={turns.reload}><p><a href={to({ view: "theme", theme: name, tab: "sessions" })}>All sessions</a></p></Trouble>;
  if (!turns.data) return <Waiting what="the session" />;
  return (
    <Fragment>
      <div className="pgv-head">
        <p><a href={to({ view: "theme", theme: name, tab: "sessions" })}>All sessions</a> / <strong><Stored text={session} /></strong></p>
        <button type="button" className="pgv-button" onClick={() => ask(forgettingAll("session", session))}>Forget the session…</button>
      </div>
      {first.data ? <Around transcript={first.data} /> : null}
      {first.data?.begins_later ? <p className="pgv-faint">This begins in the middle. <a href={to({ view: "theme", theme: name, tab: "sessions", session })}>From the beginning</a></p> : null}
      {turns.data.length ? null : <Empty title="Nothing was said here"><p>This session only worked for others, or what was said has been forgotten.</p></Empty>}
      <ol className="pgv-transcript">
        {turns.data.map((said) => (
          <li key={said.name} ref={said.name === turn ? linked : null} className={`pgv-said pgv-said-${said.role} ${said.name === turn ? "pgv-row-linked" : ""}`}>
            <p className="pgv-hit-head">
              <strong>{said.role}</strong>
              <Time at={said.at} full />
              <span className="pgv-faint">{said.name}</span>
              {said.hidden_by ? <strong>hidden</strong> : null}
              <button type="button" className="pgv-plain" aria-label={`Forget ${said.name}`} onClick={() => ask(forgetting({ name: said.name, kind: "turn" }))}>Forget…</button>
            </p>
            <p className="pgv-text"><Stored text={said.content} />{said.left_out ? <Fragment> … <a href={to({ view: "theme", theme: name, tab: "turns", row: said.name })}>{count(said.left_out)} more characters</a></Fragment> : null}</p>
          </li>
        ))}
      </ol>
      <More more={turns.more} busy={turns.busy} />
    </Fragment>
  );
}

function Around({ transcript }: { transcript: Transcript }) {
  const link = (session: string) => <a href={to({ view: "theme", theme: transcript.theme, tab: "sessions", session })}><Stored text={session} /></a>;
  if (!transcript.children.length && !transcript.parents.length) return null;
  return (
    <dl className="pgv-pairs">
      {transcript.parents.length ? <Pair name="Worked for">{transcript.parents.map((edge) => <span key={edge.session_id} className="pgv-item">{link(edge.session_id)}</span>)}</Pair> : null}
      {transcript.children.length ? <Pair name="Gave work to">{transcript.children.map((edge, place) => <span key={place} className="pgv-item">{link(edge.child_session_id)}</span>)}</Pair> : null}
    </dl>
  );
}

function Delegations({ name }: { name: string }) {
  const found = useLoad<{ edges: Edge[]; is_cut: boolean }>("delegations", { theme: name });
  if (found.error && !found.data) return <Trouble error={found.error} reload={found.reload} />;
  if (!found.data) return <Waiting what="the delegations" />;
  if (!found.data.edges.length) return <Empty title="No delegations"><p>When an agent gives work to a subagent, both sessions appear here.</p></Empty>;
  return (
    <Fragment>
      <p className="pgv-faint">A session on the left gave work to the sessions on its right. Choose one to read it.</p>
      <Graph edges={found.data.edges} theme={name} />
      {found.data.is_cut ? <p className="pgv-faint">Only the newest are drawn.</p> : null}
    </Fragment>
  );
}
