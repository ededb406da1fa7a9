// The page: a line about health and trust, the ways to its views, the view itself, and the question before a change.
import { Refusal, type Activity, type Plan, type Status } from "./api";
import { Change, Notes, show, undo, type Ask, type Wanted } from "./change";
import { HomeView } from "./home";
import { useLoad } from "./load";
import { Command, Trouble, spelled } from "./parts";
import { go, to, usePlace } from "./place";
import { AddDialog, RowView, Rows } from "./rows";
import { SearchView } from "./search";
import { SessionView, ThemeView } from "./theme";
import { count, counted } from "./words";
import { Component, h, useEffect, useRef, useState, type FormEvent, type Props } from "./sdk";
import "./style.css";

const VIEWS: [string, string][] = [["", "Memory"], ["all", "Everything"]];

/** A mistake in drawing must not take the host's whole dashboard with it. */
class Boundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div className="pgv-root">
        <div className="pgv-note pgv-trouble" role="alert">
          <p><strong>This page has failed.</strong> Nothing that is stored was changed by it.</p>
          <p><button type="button" className="pgv-button" onClick={() => { location.hash = ""; this.setState({ error: null }); }}>Back to the memories</button></p>
          <p className="pgv-faint">{String(this.state.error.message)}</p>
        </div>
      </div>
    );
  }
}

function Page() {
  const place = usePlace();
  const view = place.view ?? "";
  const status = useLoad<Status>("status", { limit: 1 }, { every: 5000 });
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const [isAdding, setAdding] = useState(false);
  const [said, setSaid] = useState<{ text: string; back: Wanted | null } | null>(null);
  const [version, setVersion] = useState(0);
  const main = useRef<HTMLDivElement>(null);
  const shown = `${view} ${place.theme ?? ""} ${place.session ?? ""} ${place.id ?? ""}`;
  const before = useRef(shown);
  useEffect(() => {
    if (before.current !== shown) main.current?.focus({ preventScroll: false });
    before.current = shown;
  }, [shown]);
  useEffect(() => {
    const jump = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest?.("input, textarea, select, dialog")) return;
      event.preventDefault();
      document.querySelector<HTMLInputElement>(".pgv-root input[type=search]")?.focus();
    };
    addEventListener("keydown", jump);
    return () => removeEventListener("keydown", jump);
  }, []);
  const finish = (text: string, plan: Plan | null, asked: Wanted | null) => {
    setSaid({ text, back: backOf(asked, plan) });
    setWanted(null);
    setAdding(false);
    setVersion(version + 1);
    if (asked?.operation === "forget" && (asked.given.theme || view === "row")) go({});
  };
  const isEmpty = status.error instanceof Refusal && status.error.document.set_up === false;
  const theme = place.theme ?? "";
  return (
    <div className="pgv-root">
      {isEmpty ? <Welcome /> : (
        <Strip status={status.data} lost={status.error?.message ?? ""} />
      )}
      <div className="pgv-bar" hidden={isEmpty}>
        <nav className="pgv-tabs" aria-label="Views of the memory">
          {VIEWS.map(([value, name]) => <a key={value} href={to({ view: value })} aria-current={value === view ? "page" : undefined}>{name}</a>)}
        </nav>
        <Search key={`${theme} ${place.q ?? ""}`} theme={theme} asked={place.q ?? ""} />
        <button type="button" className="pgv-button" onClick={() => setAdding(true)}>Add a memory…</button>
      </div>
      {said ? (
        <div className="pgv-note pgv-done" role="status">
          <p>{said.text}</p>
          <p className="pgv-buttons">
            {said.back ? <button type="button" className="pgv-button" onClick={() => setWanted(said.back)}>Undo</button> : null}
            <button type="button" className="pgv-plain" onClick={() => setSaid(null)}>Close</button>
          </p>
        </div>
      ) : null}
      <div ref={main} tabIndex={-1} className="pgv-main">
        {isEmpty ? null : view === "search" ? <SearchView place={place} ask={setWanted} version={version} />
          : view === "theme" ? <ThemeView key={place.theme} place={place} ask={setWanted} version={version} />
          : view === "session" ? <SessionView key={`${place.session} ${version}`} place={place} ask={setWanted} />
          : view === "row" ? <RowView key={`${place.id} ${version}`} id={place.id ?? ""} ask={setWanted} />
          : view === "all" ? <Everything key={`${place.origin} ${version}`} origin={place.origin ?? ""} ask={setWanted} />
          : <HomeView ask={setWanted} version={version} />}
      </div>
      {wanted ? <Change key={JSON.stringify(wanted)} wanted={wanted} onClose={() => setWanted(null)} onDone={(done) => finish(done.said, done.plan, wanted)} /> : null}
      {isAdding ? <AddDialog theme={theme} onClose={() => setAdding(false)} onDone={(text) => finish(text, null, null)} /> : null}
    </div>
  );
}

/** What takes a change back, where something does. */
function backOf(asked: Wanted | null, plan: Plan | null): Wanted | null {
  if (asked?.operation === "mute" && plan?.rule) return show(String(plan.rule), "Bring it back?");
  const event = (plan as { event?: string } | null)?.event;
  return event ? undo(event) : null;
}

function Strip({ status, lost }: { status: Status | null; lost: string }) {
  const last = useRef<Status | null>(null);
  if (status) last.current = status;
  const activity = useLoad<Activity>("activity", {}, { every: 60000, when: Boolean(status && !status.error) });
  const known = last.current;
  if (!known && lost) return <Trouble error={{ message: lost }} said="No answer." />;
  if (!known) return <p className="pgv-waiting" role="status">Looking after the memory…</p>;
  const bad = known.notes.filter((each) => each.mark === "problem" || each.mark === "warning");
  const level = lost || known.error || known.held || bad.some((each) => each.mark === "problem") ? "problem" : bad.length ? "warning" : "ok";
  const { stored } = known;
  const untrusted = activity.data?.untrusted ?? 0;
  const shown = level === "ok" && untrusted ? "warning" : level;
  return (
    <section className={`pgv-strip pgv-strip-${shown}`} aria-label="Health">
      <p role="status" className="pgv-strip-said">
        <strong>{lost ? "No answer" : level === "problem" ? "Something is wrong" : level === "warning" ? "Needs attention" : untrusted ? "All works; some rows want a look" : "Everything works"}</strong>
        {stored ? <span>{counted(stored.memories, "memory", "memories")}, {counted(stored.turns, "turn")} in {counted(stored.theme_count, "theme")}</span> : null}
        {stored?.vectors_pending ? <span className="pgv-faint">{counted(stored.vectors_pending, "row")} waiting for a vector</span> : null}
        {stored?.dead_letters ? <span>{counted(stored.dead_letters, "record")} rejected</span> : null}
        {untrusted ? <a className="pgv-trust" href={to({ view: "all", origin: "untrusted" })}>! {count(untrusted)} of the last two weeks from turns that read a stranger's text</a>
          : activity.data ? <span className="pgv-faint">no stranger's text in what came in for two weeks</span> : null}
      </p>
      {lost ? <p>{lost}</p> : null}
      {known.error ? <p className="pgv-faint">{known.database}</p> : null}
      <Notes notes={bad} />
    </section>
  );
}

function Everything({ origin, ask }: { origin: string; ask: Ask }) {
  return (
    <section className="pgv-card">
      <h2 className="pgv-h2">{origin ? `All that is ${origin}, newest first` : "Everything, newest first"}</h2>
      <Rows query={{ origin }} ask={ask} empty="Nothing of this is stored" />
    </section>
  );
}

function Search({ theme, asked }: { theme: string; asked: string }) {
  const [text, setText] = useState(asked);
  const search = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) go({ view: "search", q: text.trim(), theme });
  };
  const label = theme ? `Search ${spelled(theme)}` : "Search memories and turns";
  return (
    <form className="pgv-quick" onSubmit={search} role="search">
      <input className="pgv-input" type="search" value={text} onChange={(event) => setText(event.target.value)} aria-label={label} placeholder={`${label}  ( / )`} maxLength={2000} />
    </form>
  );
}

function Welcome() {
  return (
    <section className="pgv-card">
      <h2 className="pgv-h2">There is no memory here yet</h2>
      <p>One command gives this hermes home a database, the plugin folder and the settings, and checks that everything works:</p>
      <p><Command text="hermes-pgvector up" /></p>
      <p>With a Postgres of your own: <Command text="hermes-pgvector up --dsn postgresql://you@db.example.com/hermes" /></p>
      <p className="pgv-faint">This page notices by itself when the memory is there.</p>
    </section>
  );
}

export const App = () => <Boundary><Page /></Boundary>;
