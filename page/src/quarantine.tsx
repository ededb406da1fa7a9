// What is kept out of every recall in a theme, by which rule, and bringing it back.
import type { Batch, Row } from "./api";
import { countsIn, type Wanted } from "./change";
import { useLoad, usePages } from "./load";
import { Empty, More, Stored, Time, Trouble, Waiting } from "./parts";
import { RowLine, type Ask } from "./theme";
import { counted, when } from "./words";
import { Fragment, h } from "./sdk";

const releasing = (batch: Batch): Wanted => ({
  title: `End quarantine ${batch.batch}?`,
  ways: [{
    name: "release", body: { batch: String(batch.batch) }, label: "End it", verb: "Bring it back",
    explains: batch.elsewhere ? "Recall finds what it holds again, in every theme it is about." : "Recall finds what it holds again.",
    done: (plan) => `Quarantine ${batch.batch} is over: recall finds ${countsIn(plan.back!)} again.`,
  }],
});

export function Quarantine({ name, ask }: { name: string; ask: Ask }) {
  const found = useLoad<{ batches: Batch[] }>("quarantine", { theme: name });
  if (found.error && !found.data) return <Trouble error={found.error} reload={found.reload} />;
  if (!found.data) return <Waiting what="what is in quarantine" />;
  if (!found.data.batches.length) {
    return (
      <Empty title="Nothing is in quarantine">
        <p>A quarantine keeps a whole batch out of every recall, until somebody ends it: <code>hermes-pgvector quarantine --help</code></p>
      </Empty>
    );
  }
  return <ul className="pgv-rows">{found.data.batches.map((batch) => <BatchOf key={batch.batch} batch={batch} theme={name} ask={ask} />)}</ul>;
}

function BatchOf({ batch, theme, ask }: { batch: Batch; theme: string; ask: Ask }) {
  const { rule } = batch;
  return (
    <li className="pgv-batch">
      <div className="pgv-head">
        <p><strong>Quarantine {batch.batch}</strong> <span className="pgv-faint">by <Stored text={batch.by} />, <Time at={batch.at} /></span></p>
        {batch.undone_at ? <span className="pgv-faint">ended <Time at={batch.undone_at} /></span> : <button type="button" className="pgv-button" onClick={() => ask(releasing(batch))}>End it…</button>}
      </div>
      <p>
        {!batch.is_rule ? "Brought by an import" : (
          <Fragment>
            Everything{rule.session_id ? <Fragment> of session <code><Stored text={rule.session_id} /></code></Fragment> : null}
            {rule.origin ? <Fragment> of origin <strong>{rule.origin}</strong></Fragment> : null}
            {rule.since ? ` since ${when(rule.since)}` : ""}
            {rule.until ? ` until ${when(rule.until)}` : ", also what it says from now on"}
            {rule.theme ? ", in this theme only" : ", in every theme"}
          </Fragment>
        )}
      </p>
      {batch.undone_at ? null : (
        <Fragment>
          <p className="pgv-faint">Holds {countsIn({ memories: batch.memories, turns: batch.turns })} here{batch.elsewhere ? `, and ${counted(batch.elsewhere, "row")} in other themes` : ""}.</p>
          {batch.memories + batch.turns ? <HeldRows batch={batch.batch} theme={theme} ask={ask} /> : null}
        </Fragment>
      )}
    </li>
  );
}

function HeldRows({ batch, theme, ask }: { batch: number; theme: string; ask: Ask }) {
  const rows = usePages<Row>("held", { theme, batch }, (document) => document.rows);
  if (rows.error && !rows.data) return <Trouble error={rows.error} reload={rows.reload} />;
  if (!rows.data) return <Waiting what="the rows" />;
  return (
    <div className="pgv-held">
      <ul className="pgv-rows">{rows.data.map((row) => <RowLine key={row.name} row={row} ask={ask} open={false} inBatch />)}</ul>
      {rows.error ? <Trouble error={rows.error} /> : null}
      <More more={rows.more} busy={rows.busy} />
    </div>
  );
}
