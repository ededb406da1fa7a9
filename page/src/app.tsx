// The page: the health strip, the ways to its views, and the view itself.
import type { Health } from "./api";
import { FleetView } from "./fleet";
import { HealthStrip } from "./health";
import { useLoad } from "./load";
import { Command, plainly } from "./parts";
import { go, to, usePlace } from "./place";
import { SearchView } from "./search";
import { SetupView } from "./setup";
import { ThemeView } from "./theme";
import { Card, CardContent, CardHeader, CardTitle, Component, h, useEffect, useRef, useState, type FormEvent, type Props } from "./sdk";
import "./style.css";

const VIEWS: [string, string][] = [["", "Fleet"], ["search", "Search"], ["setup", "Setup"]];

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
          <p className="pgv-buttons"><button type="button" className="pgv-button" onClick={() => { location.hash = ""; this.setState({ error: null }); }}>Back to the fleet</button></p>
          <p className="pgv-faint">{String(this.state.error.message)}</p>
        </div>
      </div>
    );
  }
}

function Page() {
  const place = usePlace();
  const view = place.view ?? "";
  const health = useLoad<Health>("health", {}, { every: 5000 });
  const last = useRef<Health | null>(null);
  if (health.data) last.current = health.data;
  const main = useRef<HTMLDivElement>(null);
  const shown = `${view} ${place.theme ?? ""} ${place.session ?? ""}`;
  const before = useRef(shown);
  useEffect(() => {
    if (before.current !== shown) main.current?.focus({ preventScroll: false });
    before.current = shown;
  }, [shown]);
  const isEmpty = last.current && !last.current.set_up;
  return (
    <div className="pgv-root">
      {isEmpty && view !== "setup" ? null : <HealthStrip health={last.current} lost={health.error?.message ?? ""} />}
      <div className="pgv-bar">
        <nav className="pgv-tabs" aria-label="Views of the memory">
          {VIEWS.map(([value, name]) => <a key={value} href={to({ view: value })} aria-current={value === view || (value === "" && view === "theme") ? "page" : undefined}>{name}</a>)}
        </nav>
        {view === "search" ? null : <QuickSearch theme={view === "theme" ? place.theme ?? "" : ""} />}
      </div>
      <div ref={main} tabIndex={-1} className="pgv-main">
        {!last.current && !health.error ? null : view === "setup" ? <SetupView /> : isEmpty ? <Welcome /> : view === "search" ? <SearchView place={place} /> : view === "theme" ? <ThemeView key={place.theme} place={place} /> : <FleetView place={place} />}
      </div>
    </div>
  );
}

function QuickSearch({ theme }: { theme: string }) {
  const [text, setText] = useState("");
  const search = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) go({ view: "search", q: text.trim(), theme });
  };
  return (
    <form className="pgv-quick" onSubmit={search} role="search">
      <input className="pgv-input" type="search" value={text} onChange={(event) => setText(event.target.value)} aria-label={theme ? `Search theme ${plainly(theme)}` : "Search memories and turns"} placeholder={theme ? `Search ${plainly(theme)}` : "Search memories and turns"} maxLength={2000} />
      <button type="submit" className="pgv-button">Search</button>
    </form>
  );
}

function Welcome() {
  return (
    <Card>
      <CardHeader><CardTitle>There is no memory here yet</CardTitle></CardHeader>
      <CardContent className="pgv-tab">
        <p>One command gives this hermes home a database, the plugin folder and the settings, and checks that everything works:</p>
        <p><Command text="hermes-pgvector up" /></p>
        <p>With a Postgres of your own: <Command text="hermes-pgvector up --dsn postgresql://you@db.example.com/hermes" /></p>
        <p className="pgv-faint">This page notices by itself when the memory is there. <a href={to({ view: "setup" })}>What is checked</a></p>
      </CardContent>
    </Card>
  );
}

export const App = () => <Boundary><Page /></Boundary>;
