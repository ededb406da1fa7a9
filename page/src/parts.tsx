// Small parts that every view uses.
import { useLoad, type Loaded } from "./load";
import type { Given, Listed, Refusal } from "./api";
import { ago, when } from "./words";
import { Fragment, h, useEffect, useRef, useState, type Node, type Props } from "./sdk";

// Signs that show as nothing or change what stands around them: controls, bidi marks, zero-width signs, tags.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e01ef}]/gu;
// Within words of some scripts and in emoji these have their place, one after a visible sign.
const JOINER = /^[\u200c\u200d\ufe00-\ufe0f]$/;
// A text of nothing but hidden signs must not become a hundred thousand elements.
const MOST_PARTS = 400;
const MOST_CHARS = 1000;
const MANY = 20;
const VISIBLE_BEFORE = /[^\s!-~]$/u;

/** Stored text where only plain text can stand, as `Stored` shows it. */
export const spelled = (text: string) => text.replace(HIDDEN, (sign) => `U+${codeOf(sign)}`);

const codeOf = (sign: string) => sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");

/** Stored text: always text, in its own direction, with signs that would hide shown by their numbers. */
export function Stored({ text }: { text: string }) {
  const parts: Node[] = [];
  let at = 0;
  let after = -1;
  for (const found of text.matchAll(HIDDEN)) {
    const follows = found.index === after;
    const fits = JOINER.test(found[0]) && VISIBLE_BEFORE.test(text.slice(Math.max(0, found.index - 2), found.index));
    after = found.index + found[0].length;
    // A variation sign and a joiner may follow each other within one emoji; longer runs carry something else.
    if (fits && (!follows || (found[0] === "\u200d" && text[found.index - 1] === "\ufe0f"))) continue;
    if (parts.length > MOST_PARTS) {
      const rest = text.slice(at);
      parts.push(spelled(rest.slice(0, MOST_CHARS)), rest.length > MOST_CHARS ? ` … ${rest.length - MOST_CHARS} more characters` : "");
      at = text.length;
      break;
    }
    if (found.index > at) parts.push(text.slice(at, found.index));
    const code = codeOf(found[0]);
    parts.push(<span key={found.index} className="pgv-hidden-sign" title={`hidden sign U+${code}`}>{`U+${code}`}</span>);
    at = found.index + found[0].length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return <bdi className="pgv-stored" dir="auto">{parts}</bdi>;
}

export function Time({ at, full = false }: { at: string | null; full?: boolean }) {
  if (!at) return <span>never</span>;
  return <time dateTime={at} title={when(at)}>{full ? when(at) : ago(at)}</time>;
}

/** A command that somebody may want in a terminal. */
export function Command({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  const copy = () => {
    const done = (worked: boolean) => {
      setSaid(worked ? "Copied" : "Select and copy it");
      setTimeout(() => setSaid(""), 2500);
    };
    if (!navigator.clipboard) done(false);
    else navigator.clipboard.writeText(text).then(() => done(true), () => done(false));
  };
  return (
    <span className="pgv-command">
      <code>{text}</code>
      <button type="button" className="pgv-plain" onClick={copy} aria-label={`Copy the command ${text}`}>
        <span role="status">{said || "Copy"}</span>
      </button>
    </span>
  );
}

export function Trouble({ error, children, reload, said = "This could not be read." }: Props<{ error: { message: string }; reload?: () => void; said?: string }>) {
  return (
    <div className="pgv-note pgv-trouble" role="alert">
      <p><strong>{said}</strong> {error.message}</p>
      {children}
      {reload ? <button type="button" className="pgv-button" onClick={reload}>Try again</button> : null}
    </div>
  );
}

export function Empty({ title, children }: Props<{ title: string }>) {
  return (
    <div className="pgv-note pgv-empty">
      <p className="pgv-empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Waiting({ what }: { what: string }) {
  return <p className="pgv-waiting" role="status">Reading {what}…</p>;
}

/** What has been read, or why it has not; what is shown stays while it is read again. */
export function Read<T>({ found, what, children, back }: { found: Loaded<T>; what: string; children: (data: T) => Node; back?: Node }) {
  // Why, the line about health says once for all parts of the page.
  if (found.repeats && found.error?.status === 503 && !found.data) return <p className="pgv-faint">This appears when the database answers again.</p>;
  if (found.error && !found.data) return <Trouble error={found.error} reload={found.reload}>{back}</Trouble>;
  return found.data ? <Fragment>{children(found.data)}</Fragment> : <Waiting what={what} />;
}

/** A list, of which more is shown whenever somebody asks for it. */
export function Pages<T>({ query, what, empty, children }: { query: Given; what: string; empty: Node; children: (rows: T[]) => Node }) {
  const [limit, setLimit] = useState(MANY);
  const found = useLoad<Listed<T>>("list", query, { limit });
  return (
    <Read found={found} what={what}>
      {({ rows, next }) => rows.length ? <Fragment>{children(rows)}<More error={found.error} onMore={next && (() => setLimit(limit + MANY))} /></Fragment> : empty}
    </Read>
  );
}

export function More({ error, onMore }: { error: Refusal | null; onMore: (() => void) | null | "" }) {
  if (error) return <Trouble error={error} />;
  return onMore ? <p className="pgv-more"><button type="button" className="pgv-button" onClick={onMore}>Show more</button></p> : null;
}

/** A question in the middle of the page; Escape and the first button leave everything as it is. */
export function Dialog({ title, onClose, children }: Props<{ title: string; onClose: () => void }>) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = box.current;
    const before = document.activeElement as HTMLElement | null;
    if (shown && !shown.open) shown.showModal();
    return () => {
      shown?.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog ref={box} className="pgv-dialog" aria-labelledby="pgv-dialog-title" onCancel={(event: Event | any) => { event.preventDefault(); onClose(); }}>
      <h2 id="pgv-dialog-title" className="pgv-h2">{title}</h2>
      {children}
    </dialog>
  );
}

const ORIGINS: Record<string, string> = {
  user: "said by a user", assistant: "said by an agent", delegation: "a subagent's work", memory_tool: "saved by an agent", background_review: "saved by a review",
  file: "from a file", operator: "put in by an operator", import: "imported", mcp: "remembered by another agent",
};

/** Who put the words there, and whether a stranger may have had a hand in them. */
export function Origin({ origin, untrusted }: { origin: string; untrusted: boolean }) {
  const told = ORIGINS[origin];
  return (
    <Fragment>
      {told ? <span className="pgv-faint">{told}</span> : null}
      {untrusted ? <strong className="pgv-trust" title="The turn that wrote it read a stranger's text, such as a web page">! untrusted</strong> : null}
    </Fragment>
  );
}

export const Fact = ({ name, children }: Props<{ name: string }>) => (
  <div className="pgv-fact">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);
