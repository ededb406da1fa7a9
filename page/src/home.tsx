// The first screen: the latest memories and conversations, what came in, and the themes.
import type { Activity, Listed, Row, SessionRow, ThemeRow } from "./api";
import type { Ask } from "./change";
import { Chart } from "./chart";
import { useLoad } from "./load";
import { Empty, Read, Stored, Time } from "./parts";
import { to } from "./place";
import { RowLine } from "./rows";
import { count, counted, signed } from "./words";
import { h, useState } from "./sdk";

const EVERY = 5000;
const LATEST = 6;
const MANY = 1000;

export function HomeView({ ask, version }: { ask: Ask; version: number }) {
  const memories = useLoad<Listed<Row>>("list", { what: "memories", limit: LATEST }, { every: EVERY, version });
  const sessions = useLoad<Listed<SessionRow>>("list", { what: "sessions", limit: LATEST }, { every: EVERY, version });
  const activity = useLoad<Activity>("activity", {}, { every: 12 * EVERY, version });
  const themes = useLoad<Listed<ThemeRow>>("list", { what: "themes", limit: MANY }, { every: 6 * EVERY, version });
  return (
    <div className="pgv-home">
      <section className="pgv-card">
        <div className="pgv-head"><h2 className="pgv-h2">Latest memories</h2><a href={to({ view: "all" })}>All of them</a></div>
        <Read found={memories} what="the memories">
          {({ rows }) => rows.length ? <ul className="pgv-rows">{rows.map((row) => <RowLine key={row.id} row={row} ask={ask} />)}</ul>
            : <Empty title="No memories yet"><p>Agents save them with their memory tool; “Add a memory” puts one in now.</p></Empty>}
        </Read>
      </section>
      <div className="pgv-stack">
        <section className="pgv-card">
          <h2 className="pgv-h2">Latest conversations</h2>
          <Read found={sessions} what="the conversations">{({ rows }) => rows.length ? <SessionList sessions={rows} /> : <Empty title="No conversations yet" />}</Read>
        </section>
        <section className="pgv-card">
          <h2 className="pgv-h2">Stored in the last two weeks</h2>
          <Read found={activity} what="the last days">{({ days }) => <Chart days={days} />}</Read>
        </section>
      </div>
      <section className="pgv-card pgv-wide">
        <h2 className="pgv-h2">Themes</h2>
        <Read found={themes} what="the themes">{({ rows }) => <Themes themes={rows} />}</Read>
      </section>
    </div>
  );
}

export function SessionList({ sessions }: { sessions: SessionRow[] }) {
  return (
    <ul className="pgv-rows">
      {sessions.map((each) => (
        <li key={`${each.theme} ${each.session_id}`} className="pgv-row">
          <p className="pgv-hit-head">
            <a href={to({ view: "session", session: each.session_id, theme: each.theme })}><Stored text={each.session_id} /></a>
            <a href={to({ view: "theme", theme: each.theme })}><Stored text={each.theme} /></a>
            <span>{counted(each.turns, "turn")}</span>
            <Time at={each.last} />
          </p>
          <p className="pgv-text pgv-faint"><Stored text={each.begins_with} /></p>
        </li>
      ))}
    </ul>
  );
}

function Themes({ themes }: { themes: ThemeRow[] }) {
  const [find, setFind] = useState("");
  const shown = themes.filter((each) => each.theme.toLowerCase().includes(find.trim().toLowerCase()));
  if (!themes.length) return <Empty title="No themes yet"><p>A theme appears here as soon as an agent of it says something.</p></Empty>;
  return (
    <div>
      {themes.length > 8 ? <label className="pgv-field"><span>Find a theme</span><input className="pgv-input" value={find} onChange={(event) => setFind(event.target.value)} placeholder="part of its name" spellCheck={false} /></label> : null}
      <table className="pgv-table pgv-themes">
        <thead><tr><th scope="col">Theme</th><th scope="col" className="pgv-number">Memories</th><th scope="col" className="pgv-number">Turns</th><th scope="col" className="pgv-number">This week</th><th scope="col">Last write</th></tr></thead>
        <tbody>
          {shown.map((each) => (
            <tr key={each.theme}>
              <th scope="row"><a href={to({ view: "theme", theme: each.theme })}><Stored text={each.theme} /></a>{each.is_private ? <span className="pgv-tag">private</span> : null}</th>
              <td className="pgv-number" data-name="memories">{count(each.memories)}</td>
              <td className="pgv-number" data-name="turns">{count(each.turns)}</td>
              <td className="pgv-number" data-name="this week">{signed(each.new_this_week)}</td>
              <td data-name="last write"><Time at={each.last_write} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {themes.length >= MANY ? <p className="pgv-faint">Only the first {count(MANY)} are listed; the search finds the others.</p> : null}
    </div>
  );
}
