// Changing what is stored: the server says what would be done, somebody confirms it, and only that is done.
import { Refusal, change, type Note, type Plan } from "./api";
import { Command, Dialog, Stored, Trouble, Waiting, spelled } from "./parts";
import { counted } from "./words";
import { h, useEffect, useState } from "./sdk";

export interface Wanted {
  operation: string;
  /** The options of the operation. */
  given: Record<string, unknown>;
  title: string;
  explains: string;
  verb: string;
  done: string;
  isDangerous?: boolean;
  /** What has to be typed before the button works. */
  typed?: string;
}

export interface Done { said: string; plan: Plan }
export type Ask = (wanted: Wanted) => void;

const PLURALS: Record<string, [string, string]> = { memories: ["memory", "memories"], history: ["event of the history", "events of the history"] };

export function countsIn(counts: Record<string, number>): string {
  const told = Object.entries(counts).filter(([, number]) => number).map(([name, number]) => {
    const noun = name.replaceAll("_", " ");
    const [one, many] = PLURALS[name] ?? [noun.replace(/s$/, ""), noun];
    return counted(number, one, many);
  });
  return told.join(", ");
}

/** Whether a name was typed as it is or as it is shown; nobody can type the blanks and hidden signs that some have. */
function isTyped(typed: string, name: string): boolean {
  const plain = (text: string) => text.replace(/\s+/g, " ").trim();
  return [name, spelled(name)].some((each) => plain(each) === plain(typed));
}

export function Change({ wanted, onClose, onDone }: { wanted: Wanted; onClose: () => void; onDone: (done: Done) => void }) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [error, setError] = useState<Refusal | null>(null);
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState("");
  useEffect(() => {
    let left = false;
    change<Plan>(wanted.operation, wanted.given).then((found) => left || setPlan(found), (refusal: Refusal) => left || setError(refusal));
    return () => { left = true; };
  }, []);
  const confirm = () => {
    setBusy(true);
    setError(null);
    change<Plan>(wanted.operation, { ...wanted.given, execute: true, digest: plan!.digest }).then(
      (done) => onDone({ said: wanted.done, plan: done }),
      (refusal: Refusal) => {
        setError(refusal);
        setBusy(false);
        // What was shown is no longer so: the answer holds what would be done now.
        if (refusal.status === 409) setPlan(refusal.document as unknown as Plan);
      },
    );
  };
  const isNothing = plan !== null && !Object.values(plan.counts).some(Boolean) && !plan.samples.length;
  return (
    <Dialog title={wanted.title} onClose={onClose}>
      <p className="pgv-faint">{wanted.explains}</p>
      <div aria-live="polite">
        {error ? <Trouble error={error} said="Nothing was changed." /> : null}
        {plan ? <Planned plan={plan} isNothing={isNothing} /> : error ? null : <Waiting what="what this would change" />}
      </div>
      {wanted.typed && plan ? (
        <label className="pgv-field pgv-field-wide">
          <span>Type <strong><Stored text={wanted.typed} /></strong> to confirm</span>
          <input className="pgv-input" value={typed} onChange={(event) => setTyped(event.target.value)} autoComplete="off" spellCheck={false} />
        </label>
      ) : null}
      <p className="pgv-buttons">
        <button type="button" className="pgv-button" onClick={onClose} autoFocus>Leave it</button>
        <button type="button" className={`pgv-button ${wanted.isDangerous ? "pgv-button-danger" : "pgv-button-main"}`} disabled={!plan || isNothing || busy || (wanted.typed !== undefined && !isTyped(typed, wanted.typed))} onClick={confirm}>
          {busy ? "Working…" : wanted.verb}
        </button>
      </p>
    </Dialog>
  );
}

function Planned({ plan, isNothing }: { plan: Plan; isNothing: boolean }) {
  return (
    <div className="pgv-plan">
      <p><strong>{isNothing ? "Nothing would change: it is so already." : `This concerns ${countsIn(plan.counts) || counted(plan.samples.length, "row")}.`}</strong></p>
      {plan.samples.length ? (
        <ul className="pgv-samples">
          {plan.samples.slice(0, 5).map((sample, place) => (
            <li key={place} className={`pgv-text ${sample.sign === "-" ? "pgv-before" : ""}`}>{sample.sign ? `${sample.sign} ` : ""}<Stored text={(sample.content ?? "").slice(0, 400)} /></li>
          ))}
        </ul>
      ) : null}
      <Notes notes={[...plan.notes, ...plan.left]} />
    </div>
  );
}

/** What needs attention, each with the command that helps. */
export function Notes({ notes }: { notes: Note[] }) {
  if (!notes.length) return null;
  return (
    <ul className="pgv-checks">
      {notes.map((note, place) => (
        <li key={place} className="pgv-check">
          <span aria-hidden="true">{note.mark === "ok" ? "✓" : note.mark === "note" ? "·" : "!"}</span>
          <div className="pgv-check-text">
            <p><Stored text={note.text} />{note.hint ? <span className="pgv-faint">: {note.hint}</span> : null}</p>
            {note.then ? <p><Command text={note.then} /></p> : null}
          </div>
        </li>
      ))}
    </ul>
  );
}

export const hide = (ids: string[]): Wanted => ({
  operation: "mute", given: { ids }, title: ids.length === 1 ? `Hide ${ids[0]}?` : `Hide ${counted(ids.length, "row")}?`, verb: "Hide",
  explains: "What is hidden is kept, and no recall finds it until somebody brings it back.", done: "Hidden.",
});
export const show = (which: string, title: string): Wanted => ({
  operation: "mute", given: { undo: which }, title, verb: "Bring back", explains: "Recall finds it again.", done: "Recall finds it again.",
});
export const forget = (given: Record<string, unknown>, what: string, typed?: string): Wanted => ({
  operation: "forget", given, title: `Forget ${what}?`, verb: "Erase for good", isDangerous: true, done: "Forgotten.",
  explains: "It is erased from the database, from journals and from MEMORY.md and USER.md of this machine, and does not come back.",
  ...(typed ? { typed } : {}),
});
export const undo = (event: string): Wanted => ({
  operation: "undo", given: { event }, title: `Undo ${event}?`, verb: "Undo it", done: `${event} is undone.`,
  explains: "The words from before come back; where they stand in MEMORY.md or USER.md, that file is changed.",
});
export const edit = (id: string, text: string): Wanted => ({
  operation: "edit", given: { id, text }, title: `Change ${id}?`, verb: "Change it", done: `${id} has its new words.`,
  explains: "Where it stands in MEMORY.md or USER.md, that file is changed under the lock of hermes.",
});
