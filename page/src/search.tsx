// Search as an agent would: what is found, and why.
import type { Found, Hit, Reasons } from "./api";
import type { Ask } from "./change";
import { useLoad } from "./load";
import { Empty, Origin, Read, Stored, Time, Trouble, Waiting } from "./parts";
import { to, type Place } from "./place";
import { RowButtons, whose } from "./rows";
import { percent } from "./words";
import { Fragment, h, useState } from "./sdk";

const SHORT = 600;

export function SearchView({ place, ask, version }: { place: Place; ask: Ask; version: number }) {
  const { q = "", theme = "" } = place;
  return (
    <section className="pgv-card">
      <div className="pgv-head">
        <h2 className="pgv-h2">Found {theme ? <Fragment>in <a href={to({ view: "theme", theme })}><Stored text={theme} /></a></Fragment> : "in all themes"}</h2>
        {theme ? <a href={to({ view: "search", q })}>Search all themes</a> : null}
      </div>
      {q ? <Results key={`${q} ${theme} ${version}`} query={q} theme={theme} ask={ask} /> : null}
    </section>
  );
}

function Results({ query, theme, ask }: { query: string; theme: string; ask: Ask }) {
  const found = useLoad<Found>("recall", theme ? { query, theme, limit: 10 } : { query, scope: "all", limit: 10 });
  return (
    <Read found={found} what="what recall finds">
      {({ degraded, results, note }) => (
        <Fragment>
          {degraded ? <p className="pgv-note">{degraded}</p> : null}
          {results.length ? <ul className="pgv-rows">{results.map((hit) => <HitLine key={hit.id} hit={hit} query={query} ask={ask} />)}</ul> : (
            <Empty title="Nothing is found">
              <p>{note ?? "No row is near enough, and none has the words."}</p>
            </Empty>
          )}
        </Fragment>
      )}
    </Read>
  );
}

function HitLine({ hit, query, ask }: { hit: Hit; query: string; ask: Ask }) {
  const [open, setOpen] = useState(false);
  return (
    <li className="pgv-row">
      <p className="pgv-hit-head">
        <a href={to({ view: "row", id: hit.id })}>{hit.id}</a>
        <span className="pgv-tag">{whose(hit)}</span>
        <a href={to({ view: "theme", theme: hit.agent_identity })}><Stored text={hit.agent_identity} /></a>
        <Time at={hit.ts} />
        <Origin origin={hit.origin} untrusted={hit.untrusted} />
        <span className="pgv-faint">{hit.score === null ? "by its words" : `similarity ${hit.score.toFixed(2)}`}</span>
      </p>
      <p className="pgv-text"><Stored text={hit.content.slice(0, SHORT)} />{hit.content.length > SHORT ? " …" : ""}</p>
      {open ? <Why hit={hit} query={query} /> : null}
      <RowButtons row={hit} ask={ask}><button type="button" className="pgv-plain" aria-expanded={open} onClick={() => setOpen(!open)}>Why this hit</button></RowButtons>
    </li>
  );
}

function Why({ hit, query }: { hit: Hit; query: string }) {
  const found = useLoad<Reasons>("why", { query, theme: hit.agent_identity, limit: 20 });
  if (found.error) return <Trouble error={found.error} />;
  if (!found.data) return <Waiting what="the reasons" />;
  const reason = found.data.results.find((each) => each.id === hit.id);
  const search = found.data.searches.find((each) => each.kind.startsWith(hit.kind)) ?? found.data.searches[0];
  if (!reason) return <p className="pgv-why">Asked in its own theme alone, it is not among the first twenty.</p>;
  return (
    <div className="pgv-why">
      <p>{reason.score === null ? "It has no vector: its words found it." : `By meaning: similarity ${reason.score.toFixed(2)}${search?.model ? `, by ${search.model.name}` : ""}.`}</p>
      <p>{reason.words?.length ? `By words: ${reason.words.join(", ")}, ${percent(reason.words_share ?? 0)} of what the question's words weigh.` : "It shares no word with the question."}</p>
      {search ? <p className="pgv-faint">Rank {reason.rank?.toFixed(2)}; the best hit needs {search.bar.toFixed(2)}.</p> : null}
    </div>
  );
}
