// The strip on top: one line while all is well, and otherwise what is wrong and what to do.
import type { Health } from "./api";
import { Command, LevelMark, Stored, Time } from "./parts";
import { counted } from "./words";
import { h, memo, useState } from "./sdk";

function summary(health: Health): string {
  const problems = health.checks.filter((each) => each.level === "problem").length;
  const warnings = health.checks.filter((each) => each.level === "warning").length;
  const told = [problems ? counted(problems, "problem") : "", warnings ? counted(warnings, "warning") : ""].filter(Boolean);
  return told.length ? told.join(" and ") : "Everything works";
}

export const HealthStrip = memo(({ health, lost }: { health: Health | null; lost: string }) => {
  const [open, setOpen] = useState(false);
  if (!health && !lost) return <p className="pgv-waiting" role="status">Looking after the memory…</p>;
  const bad = health?.checks.filter((each) => each.level !== "ok") ?? [];
  const shown = open ? health?.checks ?? [] : bad;
  return (
    <section className={`pgv-strip pgv-strip-${lost ? "problem" : health!.level}`} aria-label="Health">
      <div className="pgv-strip-head">
        <p role="status" className="pgv-strip-said">
          <LevelMark level={lost ? "problem" : health!.level} />
          <strong>{lost ? "No answer" : summary(health!)}</strong>
          {health ? <span className="pgv-faint"> {lost ? "last known state, " : ""}<Time at={health.checked_at} /></span> : null}
        </p>
        {health ? (
          <button type="button" className="pgv-plain" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? "Show less" : "Show all parts"}
          </button>
        ) : null}
      </div>
      {lost ? <p>{lost}</p> : null}
      {shown.length ? <Checks checks={shown} /> : null}
    </section>
  );
});

export function Checks({ checks }: { checks: Health["checks"] }) {
  return (
    <ul className="pgv-checks">
      {checks.map((check, place) => (
        <li key={`${check.name} ${place}`} className={`pgv-check pgv-check-${check.level}`}>
          <LevelMark level={check.level} />
          <div className="pgv-check-text">
            <p><strong className="pgv-check-name">{check.name}</strong> <Stored text={check.text} /></p>
            {check.hint ? <p><span className="pgv-faint">What to do: {check.command && check.hint.endsWith(check.command) ? check.hint.slice(0, -check.command.length) : check.hint} </span>{check.command ? <Command text={check.command} /> : null}</p> : null}
          </div>
        </li>
      ))}
    </ul>
  );
}
