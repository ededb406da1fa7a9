// One box over memories and turns, and why each hit is one.
import type { Found, Group, Hit, Term, WhyFound } from "./api";
import { useLoad } from "./load";
import { Command, Empty, ORIGIN_CHOICES, Origin, Pair, Stored, Time, Trouble, Waiting, plainly } from "./parts";
import { go, to, type Place } from "./place";
import { counted, milliseconds, percent, when } from "./words";
import { Button, Card, CardContent, CardHeader, CardTitle, Input, h, useEffect, useId, useState, type ChangeEvent, type FormEvent } from "./sdk";

const WHAT: [string, string][] = [["all", "Everything"], ["memories", "Memories"], ["memory", "MEMORY.md entries"], ["user", "USER.md entries"], ["turns", "Turns"]];
const ROLES: [string, string][] = [["any", "Anybody"], ["user", "The user"], ["assistant", "The agent"], ["tool", "A tool"]];
const FIELDS = ["q", "theme", "what", "role", "origin", "since", "until"] as const;

type Form = Record<(typeof FIELDS)[number], string>;

const formOf = (place: Place): Form => Object.fromEntries(FIELDS.map((name) => [name, place[name] ?? ""])) as Form;

export function SearchView({ place }: { place: Place }) {
  const asked = formOf(place);
  const found = useLoad<Found>("search", asked, { when: Boolean(asked.q.trim()) });
  return (
    <div className="pgv-stack">
      <Card>
        <CardHeader><CardTitle>Search</CardTitle></CardHeader>
        <CardContent><SearchForm place={place} /></CardContent>
      </Card>
      {!asked.q.trim() ? (
        <Empty title="Ask as an agent would">
          <p>A question, a few words or an exact token. Memories and past turns are searched by meaning and by words.</p>
        </Empty>
      ) : found.error ? <Trouble error={found.error} reload={found.reload} /> : found.data ? <Results found={found.data} asked={asked} /> : <Waiting what="the memory" />}
    </div>
  );
}

function SearchForm({ place }: { place: Place }) {
  const [form, setForm] = useState(formOf(place));
  const key = JSON.stringify(formOf(place));
  useEffect(() => setForm(formOf(place)), [key]);
  const names = useLoad<{ names: string[] }>("names", { find: form.theme, limit: 30 });
  const list = useId();
  const set = (name: keyof Form) => (event: ChangeEvent) => setForm({ ...form, [name]: event.target.value });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    go({ view: "search", ...form, what: form.what === "all" ? null : form.what, role: form.role === "any" ? null : form.role });
  };
  const select = (name: "what" | "role" | "origin", options: [string, string][]) => (
    <select className="pgv-select" value={form[name] || options[0]![0]} onChange={set(name)}>
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  );
  return (
    <form onSubmit={submit} role="search">
      <label className="pgv-field pgv-field-wide">
        <span>What to look for</span>
        <Input name="q" value={form.q} onChange={set("q")} autoComplete="off" maxLength={2000} autoFocus={!form.q} placeholder="what did we decide about the launch" />
      </label>
      <div className="pgv-fields">
        <label className="pgv-field"><span>Theme</span><Input name="theme" value={form.theme} onChange={set("theme")} list={list} placeholder="all" autoComplete="off" spellCheck={false} /></label>
        <datalist id={list}>{names.data?.names.map((name) => <option key={name} value={name} />)}</datalist>
        <label className="pgv-field"><span>What</span>{select("what", WHAT)}</label>
        <label className="pgv-field"><span>Said by</span>{select("role", ROLES)}</label>
        <label className="pgv-field"><span>Origin</span>{select("origin", ORIGIN_CHOICES)}</label>
        <label className="pgv-field"><span>From</span><Input type="date" value={form.since} onChange={set("since")} /></label>
        <label className="pgv-field"><span>Until</span><Input type="date" value={form.until} onChange={set("until")} /></label>
        <Button type="submit" className="pgv-submit">Search</Button>
      </div>
    </form>
  );
}

const SLOW_MS = 1000;
const slowest = (found: Found) => Math.max(0, ...found.groups.map((group) => group.milliseconds.search ?? 0));
const isSlow = (found: Found, asked: Form) => !asked.theme && slowest(found) > SLOW_MS;

function Results({ found, asked }: { found: Found; asked: Form }) {
  const all = found.groups.reduce((sum, group) => sum + group.hits.length, 0);
  return (
    <div className="pgv-stack">
      {isSlow(found, asked) ? <p className="pgv-note" role="status"><span>Searching all themes took {milliseconds(slowest(found))}. Name a theme, or see whether an index would help: <Command text="hermes-pgvector index" /></span></p> : null}
      {found.degraded ? <p className="pgv-note" role="status"><span><strong>Not everything was searched:</strong> {found.degraded}</span></p> : null}
      <p className="pgv-faint" role="status">{all ? `${counted(all, "hit")} in ${asked.theme ? `theme ${plainly(asked.theme)}` : "all themes that are not private"}` : ""}</p>
      {all ? found.groups.map((group) => (group.hits.length ? <GroupOfHits key={group.kind} group={group} asked={asked} /> : null)) : (
        <Empty title="Nothing found">
          <ul>
            <li>Use fewer or other words; a name or a number works best.</li>
            {asked.theme ? <li><a href={to({ view: "search", ...asked, theme: null })}>Search all themes</a></li> : <li>Private themes (dm-…, group-…) are searched only when you name them.</li>}
            {asked.since || asked.until ? <li><a href={to({ view: "search", ...asked, since: null, until: null })}>Search all times</a></li> : null}
            <li>Hidden rows are never found; a theme's page lists them.</li>
          </ul>
        </Empty>
      )}
    </div>
  );
}

function GroupOfHits({ group, asked }: { group: Group; asked: Form }) {
  return (
    <Card>
      <CardHeader><CardTitle>{group.kind === "memory" ? "Memories" : "Past turns"}</CardTitle></CardHeader>
      <CardContent>
        <ol className="pgv-hits">{group.hits.map((hit) => <HitLine key={hit.name + hit.theme} hit={hit} asked={asked} />)}</ol>
      </CardContent>
    </Card>
  );
}

function HitLine({ hit, asked }: { hit: Hit; asked: Form }) {
  const [open, setOpen] = useState(false);
  const panel = useId();
  const target = hit.kind === "memory"
    ? to({ view: "theme", theme: hit.theme, tab: "memories", row: hit.name })
    : to({ view: "theme", theme: hit.theme, tab: "sessions", session: hit.session_id, turn: hit.name });
  return (
    <li className="pgv-hit">
      <p className="pgv-hit-head">
        <a href={to({ view: "theme", theme: hit.theme })}><Stored text={hit.theme} /></a>
        <span className="pgv-tag">{hit.kind === "memory" ? (hit.target === "user" ? "USER.md" : "MEMORY.md") : hit.role}</span>
        <Time at={hit.at} />
        <Origin origin={hit.origin} trust={hit.trust} />
        <span className="pgv-faint">{hit.name}{hit.count > 1 ? `, said ${hit.count} times` : ""}</span>
      </p>
      <p className="pgv-text">{hit.parts.map(([text, isWord], place) => (isWord ? <mark key={place}><Stored text={text} /></mark> : <Stored key={place} text={text} />))}</p>
      <div className="pgv-hit-foot">
        <Meter name="meaning" share={hit.similarity} said={hit.similarity === null ? "unknown" : hit.similarity.toFixed(2)} />
        <Meter name="words" share={hit.words_share} said={percent(hit.words_share)} />
        <button type="button" className="pgv-plain" aria-expanded={open} aria-controls={panel} onClick={() => setOpen(!open)}>Why this hit</button>
        <a href={target}>{hit.kind === "memory" ? "Open the memory" : "Open the session"}</a>
      </div>
      <div id={panel} hidden={!open} className="pgv-why">{open ? <WhyPanel hit={hit} asked={asked} /> : null}</div>
    </li>
  );
}

const Meter = ({ name, share, said }: { name: string; share: number | null; said: string }) => (
  <span className="pgv-meter">
    <svg viewBox="0 0 40 8" aria-hidden="true"><rect width="40" height="8" rx="2" className="pgv-fill-faint" /><rect width={40 * Math.max(0, Math.min(1, share ?? 0))} height="8" rx="2" className="pgv-fill" /></svg>
    {name} {said}
  </span>
);

function WhyPanel({ hit, asked }: { hit: Hit; asked: Form }) {
  const why = useLoad<WhyFound>("why", { ...asked, name: hit.name, within: hit.theme });
  if (why.error) return <Trouble error={why.error} reload={why.reload} />;
  return why.data ? <Why {...why.data} /> : <Waiting what="how it was found" />;
}

function Why({ hit, group, terms }: { hit: Hit; group: Group; terms: Term[] }) {
  const noun = group.kind === "memory" ? "memories" : "turns";
  const has = new Set(hit.words);
  return (
    <div>
      <dl className="pgv-pairs">
        <Pair name="By meaning">
          {group.model === null ? "Not searched by meaning: there was no vector for the question." : hit.meaning === null
            ? "It has no vector yet."
            : `${hit.meaning.toFixed(1)} standard deviations nearer than unrelated texts, similarity ${hit.similarity?.toFixed(2) ?? "unknown"}, by ${group.model}.`}
        </Pair>
        <Pair name="By words">
          It has {hit.words.length ? `${percent(hit.words_share)} of the question, by rarity.` : "none of the question's words itself."}
        </Pair>
        <Pair name="A hit needs">
          {percent(group.bar)} of the question's words, or {group.bar_by_meaning.toFixed(1)} standard deviations, or both together; further hits half of that.
        </Pair>
        {group.period ? <Pair name="Time named">{when(group.period.start)} to {when(group.period.end)}: {noun} of that time come first.</Pair> : null}
        {group.asks_when ? <Pair name="Asks when">Rows that speak of a time come first.</Pair> : null}
        {group.speaker ? <Pair name="Asks for">{`what the ${group.speaker} said: those turns come first`}</Pair> : null}
        <Pair name="Rank">{hit.rank.toFixed(3)}, from both ways together</Pair>
        <Pair name="Took">{Object.entries(group.milliseconds).map(([name, took]) => `${name} ${milliseconds(took)}`).join(", ")}</Pair>
      </dl>
      {terms.length ? (
        <table className="pgv-table pgv-terms">
          <caption>Words of the question</caption>
          <thead><tr><th scope="col">Word</th><th scope="col" className="pgv-number">Counts for</th><th scope="col">In this hit</th></tr></thead>
          <tbody>
            {terms.map((term) => (
              <tr key={term.word}><th scope="row"><Stored text={term.word} /></th><td className="pgv-number">{percent(term.weight)}</td><td>{has.has(term.word) ? "yes" : term.is_absent ? "nowhere stored" : "no"}</td></tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </div>
  );
}
