// Changing what is stored: the server says what would be done, somebody confirms it, and only that is done.
import { Refusal, change, type Plan } from "./api";
import { Dialog, Stored, Trouble, Waiting, spelled } from "./parts";
import { counted } from "./words";
import { h, useEffect, useId, useState, type Node } from "./sdk";

export interface Wanted {
  title: string;
  /** The ways to do it, the gentle one first. */
  ways: { name: string; body: Record<string, unknown>; label: string; explains: string; verb: string; done(plan: Plan): string; dangerous?: boolean }[];
  /** What has to be typed before the button works. */
  typed?: string;
}

export interface Done { said: string; event?: string | undefined; theme: string }

const NOUNS: Record<string, [string, string]> = {
  turns: ["turn", "turns"], memories: ["memory", "memories"], history: ["event of the history", "events of the history"],
  delegations: ["delegation", "delegations"], recall_log: ["line of the recall log", "lines of the recall log"],
  dead_letters: ["dead letter", "dead letters"], journal_items: ["item in journal files", "items in journal files"],
  refused_writes: ["refused write", "refused writes"],
};

export function countsIn(counts: Record<string, number>): string {
  const told = Object.entries(NOUNS).filter(([name]) => counts[name]).map(([name, [one, many]]) => counted(counts[name]!, one, many));
  return told.join(", ") || "nothing";
}

/** Whether a name was typed as it is or as it is shown; nobody can type the blanks and hidden signs that some have. */
function isTyped(typed: string, name: string): boolean {
  const plain = (text: string) => text.replace(/\s+/g, " ").trim();
  return [name, spelled(name)].some((each) => plain(each) === plain(typed));
}

export function Change({ wanted, theme, onClose, onDone }: { wanted: Wanted; theme: string; onClose: () => void; onDone: (done: Done) => void }) {
  const [chosen, setChosen] = useState(0);
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<Refusal | null>(null);
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState("");
  const group = useId();
  const way = wanted.ways[chosen]!;
  useEffect(() => {
    let left = false;
    setPlan(null);
    setError(null);
    change<Plan>(way.name, { theme, ...way.body }).then((found) => left || setPlan(found), (refusal: Refusal) => left || setError(refusal));
    return () => { left = true; };
  }, [chosen]);
  const does = plan !== null && !plan.is_empty && Boolean(plan.counts ? Object.values(plan.counts).some(Boolean) : plan.remove?.length || plan.restore?.length || plan.rows?.length);
  const confirm = () => {
    setBusy(true);
    setError(null);
    change<Plan>(way.name, { theme, ...way.body, confirm: plan!.digest }).then(
      (done) => onDone({ said: way.done(done), event: done.event, theme }),
      (refusal: Refusal) => {
        setError(refusal);
        if (refusal.status !== 409) return setBusy(false);
        // What was shown is no longer so: nothing can be confirmed until the new plan is there.
        return change<Plan>(way.name, { theme, ...way.body }).then(setPlan, (again: Refusal) => { setPlan(null); setError(again); }).then(() => setBusy(false));
      },
    );
  };
  return (
    <Dialog title={wanted.title} onClose={onClose}>
      {wanted.ways.length > 1 ? (
        <fieldset className="pgv-ways">
          <legend>How</legend>
          {wanted.ways.map((each, place) => (
            <label key={each.label} className="pgv-way">
              <input type="radio" name={group} checked={chosen === place} onChange={() => setChosen(place)} disabled={busy} />
              <span><strong>{each.label}</strong> <span className="pgv-faint">{each.explains}</span></span>
            </label>
          ))}
        </fieldset>
      ) : <p className="pgv-faint">{way.explains}</p>}
      <div aria-live="polite">
        {error ? <Trouble error={error} said="Nothing was changed." /> : null}
        {plan ? <Plans plan={plan} /> : error ? null : <Waiting what="what this would change" />}
      </div>
      {wanted.typed && does ? (
        <label className="pgv-field pgv-field-wide">
          <span>Type <strong><Stored text={wanted.typed} /></strong> to confirm</span>
          <input className="pgv-input" value={typed} onChange={(event) => setTyped(event.target.value)} autoComplete="off" spellCheck={false} />
        </label>
      ) : null}
      <p className="pgv-buttons">
        <button type="button" className="pgv-button" onClick={onClose} autoFocus>Leave it</button>
        <button type="button" className={`pgv-button ${way.dangerous ? "pgv-button-danger" : "pgv-button-main"}`} disabled={!does || busy || (wanted.typed !== undefined && !isTyped(typed, wanted.typed))} onClick={confirm}>
          {busy ? "Working…" : way.verb}
        </button>
      </p>
    </Dialog>
  );
}

function Plans({ plan }: { plan: Plan }) {
  const lines: Node[] = [];
  if (plan.rule !== undefined) {
    if (plan.counts && countsIn(plan.counts) !== "nothing") lines.push(<p key="rule"><strong>{plan.rule === null ? "Recall no longer finds" : "Comes back into recall:"} {countsIn(plan.counts)}.</strong></p>);
  } else if (plan.counts) {
    lines.push(<p key="counts" className="pgv-plan-count"><strong>{plan.is_empty ? "Nothing is stored that this names." : `This erases ${countsIn(plan.counts)}.`}</strong></p>);
    if (plan.samples?.length) lines.push(<Texts key="samples" title="For example" texts={plan.samples.map((each) => each.content)} />);
    if (plan.files?.length) lines.push(<p key="files" className="pgv-note">It also stands in {plan.files.join(" and ")}. These files are the host's and stay as they are: delete the entry there.</p>);
    if (plan.host_messages) lines.push(<p key="host" className="pgv-note">{counted(plan.host_messages, "message")} in the host's own session store hold it, too: hermes sessions delete SESSION</p>);
  }
  if (plan.remove?.length) lines.push(<Texts key="remove" title={`Goes: ${counted(plan.remove.length, "memory", "memories")}`} texts={plan.remove} />);
  if (plan.restore?.length) lines.push(<Texts key="restore" title={`Comes back: ${counted(plan.restore.length, "memory", "memories")}`} texts={plan.restore} />);
  if (plan.rows?.length) lines.push(<p key="rows"><strong>{counted(plan.rows.length, "row")}: {plan.rows.join(", ")}</strong></p>);
  for (const [place, blocked] of (plan.blocked ?? []).entries()) {
    lines.push(
      <div key={`blocked ${place}`} className="pgv-note">
        <p><strong>It stands in {blocked.file} of home {blocked.homes.map((home) => home.slice(0, 8)).join(", ")}, and the file wins.</strong> {blocked.instead === null ? "Remove this line there:" : "Change this line there:"}</p>
        <p className="pgv-text"><Stored text={blocked.content} /></p>
      </div>,
    );
  }
  if (!lines.length) lines.push(<p key="none">Nothing would change: it is so already.</p>);
  return <div className="pgv-plan">{lines}</div>;
}

const Texts = ({ title, texts }: { title: string; texts: string[] }) => (
  <div>
    <p><strong>{title}</strong></p>
    <ul className="pgv-samples">{texts.slice(0, 5).map((text, place) => <li key={place} className="pgv-text"><Stored text={text.slice(0, 400)} /></li>)}</ul>
    {texts.length > 5 ? <p className="pgv-faint">and {texts.length - 5} more</p> : null}
  </div>
);
