// The fleet: how it was used lately, and one line per theme.
import type { Day, Fleet, Theme } from "./api";
import { Charts, Sparkline } from "./charts";
import { useLoad } from "./load";
import { Empty, Stored, Time, Trouble, Waiting } from "./parts";
import { become, go, to, type Place } from "./place";
import { count, counted, signed } from "./words";
import { Card, CardContent, CardHeader, CardTitle, Input, h, memo, useEffect, useState, type ChangeEvent } from "./sdk";

const PAGE = 50;
const EVERY = 5000;
const ORDERS: [string, string][] = [["size", "Largest first"], ["growth", "Fastest growing"], ["recent", "Last written"], ["name", "By name"]];

export function FleetView({ place }: { place: Place }) {
  const first = Math.max(0, Math.floor(Number(place.first)) || 0);
  const query = { find: place.find, sort: place.sort, first, limit: PAGE };
  const fleet = useLoad<Fleet>("fleet", query, { every: EVERY });
  const activity = useLoad<{ days: Day[] }>("activity", {}, { every: 6 * EVERY });
  const { data, error } = fleet;
  if (error && !data) return <Trouble error={error} reload={fleet.reload} />;
  return (
    <div className="pgv-stack">
      {activity.data ? (
        <Card>
          <CardHeader><CardTitle>The last two weeks</CardTitle></CardHeader>
          <CardContent><Charts days={activity.data.days} /></CardContent>
        </Card>
      ) : null}
      <Card>
        <CardHeader><CardTitle>Themes</CardTitle></CardHeader>
        <CardContent>
          {data && !data.all ? null : <Filter place={place} />}
          {data ? <Themes fleet={data} place={place} first={first} /> : fleet.waits ? <Waiting what="the themes" /> : null}
        </CardContent>
      </Card>
    </div>
  );
}

function Filter({ place }: { place: Place }) {
  const [text, setText] = useState(place.find ?? "");
  useEffect(() => setText(place.find ?? ""), [place.find]);
  useEffect(() => {
    if (text === (place.find ?? "")) return;
    const timer = setTimeout(() => become({ ...place, find: text, first: null }), 250);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div className="pgv-fields">
      <label className="pgv-field">
        <span>Find a theme</span>
        <Input value={text} onChange={(event: ChangeEvent) => setText(event.target.value)} placeholder="part of its name" spellCheck={false} />
      </label>
      <label className="pgv-field">
        <span>Order</span>
        <select className="pgv-select" value={place.sort ?? "size"} onChange={(event) => go({ ...place, sort: event.target.value, first: null })}>
          {ORDERS.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
        </select>
      </label>
    </div>
  );
}

function Themes({ fleet, place, first }: { fleet: Fleet; place: Place; first: number }) {
  if (!fleet.all) {
    return (
      <Empty title="Nothing is stored yet">
        <p>Talk to your agent: what is said and what it saves appears here within seconds.</p>
      </Empty>
    );
  }
  if (!fleet.themes.length && fleet.count) return <Empty title="There are no more themes"><p><a href={to({ ...place, first: null })}>Back to the first</a></p></Empty>;
  if (!fleet.themes.length) return <Empty title="No theme has that in its name"><p><a href={to({ ...place, find: null, first: null })}>Show all {count(fleet.all)} themes</a></p></Empty>;
  const last = first + fleet.themes.length;
  return (
    <div>
      <p className="pgv-faint" role="status">
        {counted(fleet.count, "theme")}{fleet.count === fleet.all ? "" : ` of ${count(fleet.all)}`}; in all {counted(fleet.memories, "memory", "memories")} and {counted(fleet.turns, "turn")}
      </p>
      <div className="pgv-scroll" tabIndex={0} role="region" aria-label="Table of themes">
        <table className="pgv-table pgv-fleet">
          <thead>
            <tr>
              <th scope="col">Theme</th>
              <th scope="col" className="pgv-number">Memories</th>
              <th scope="col" className="pgv-number">Turns</th>
              <th scope="col">Two weeks</th>
              <th scope="col" className="pgv-number">Today</th>
              <th scope="col">Last write</th>
              <th scope="col">Last recall</th>
              <th scope="col" className="pgv-number">Homes</th>
            </tr>
          </thead>
          <tbody>{fleet.themes.map((theme) => <ThemeLine key={theme.theme} theme={theme} />)}</tbody>
        </table>
      </div>
      {fleet.count > PAGE ? (
        <nav className="pgv-pager" aria-label="Pages of themes">
          {first > 0 ? <a href={to({ ...place, first: Math.max(0, first - PAGE) })}>Previous</a> : <span className="pgv-faint">Previous</span>}
          <span>{count(first + 1)} to {count(last)} of {count(fleet.count)}</span>
          {last < fleet.count ? <a href={to({ ...place, first: last })}>Next</a> : <span className="pgv-faint">Next</span>}
        </nav>
      ) : null}
    </div>
  );
}

const ThemeLine = memo(({ theme }: { theme: Theme }) => (
  <tr>
    <th scope="row">
      <a href={to({ view: "theme", theme: theme.theme })}><Stored text={theme.theme} /></a>
      {theme.is_private ? <span className="pgv-tag">private</span> : null}
    </th>
    <td data-name="Memories" className="pgv-number">{count(theme.memories)}</td>
    <td data-name="Turns" className="pgv-number">{count(theme.turns)}</td>
    <td data-name="Growth"><Sparkline values={theme.growth} /></td>
    <td data-name="Today" className="pgv-number">{theme.new_today ? signed(theme.new_today) : "–"}</td>
    <td data-name="Last write"><Time at={theme.last_write} /></td>
    <td data-name="Last recall"><Time at={theme.last_recall} /></td>
    <td data-name="Homes" className="pgv-number" title={theme.homes.join(", ")}>{count(theme.homes.length)}</td>
  </tr>
), (before, after) => JSON.stringify(before) === JSON.stringify(after));
