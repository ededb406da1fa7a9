// What came in on each of the last days: bars with an axis, and the same in words.
import type { Day } from "./api";
import { count, day } from "./words";
import { h, memo } from "./sdk";

const STACKS = [["memories", "pgv-fill"], ["turns", "pgv-fill-hollow"]] as const;

/** A round number that nothing exceeds. */
function ceiling(value: number): number {
  const step = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((each) => each * step).find((each) => each >= value) ?? value;
}

export const Chart = memo(({ days }: { days: Day[] }) => {
  const total = (each: Day) => each.memories + each.turns;
  const best = days.reduce((high, each) => (total(each) > total(high) ? each : high), days[0]!);
  if (!total(best)) return <p className="pgv-faint">Nothing came in during these two weeks.</p>;
  const top = ceiling(total(best));
  const said = `today ${count(total(days[days.length - 1]!))}, most ${count(total(best))} on ${day(best.day)}`;
  return (
    <figure className="pgv-chart">
      <div className="pgv-plot">
        <div className="pgv-axis-y" aria-hidden="true">{[1, 0.5, 0].map((share) => <span key={share}>{count(share * top)}</span>)}</div>
        <svg viewBox={`0 0 ${days.length} 100`} preserveAspectRatio="none" role="img" aria-label={`Stored per day: ${said}`}>
          {[0, 50, 100].map((y) => <line key={y} x1="0" x2={days.length} y1={y} y2={y} className="pgv-axis" />)}
          {days.map((each, place) => {
            let base = 100;
            return (
              <g key={each.day}>
                <title>{`${day(each.day)}: ${STACKS.map(([name]) => `${count(each[name])} ${name}`).join(", ")}`}</title>
                <rect x={place} y="0" width="1" height="100" className="pgv-hover" />
                {STACKS.map(([name, className]) => {
                  const height = (100 * each[name]) / top;
                  base -= height;
                  return <rect key={name} x={place + 0.14} y={base} width="0.72" height={height} className={className} />;
                })}
              </g>
            );
          })}
        </svg>
        <div className="pgv-axis-x" aria-hidden="true"><span>{day(days[0]!.day)}</span><span>{day(days[days.length - 1]!.day)}</span></div>
      </div>
      <figcaption className="pgv-chart-said">
        {STACKS.map(([name, className]) => (
          <span key={name} className="pgv-legend">
            <svg viewBox="0 0 10 10" aria-hidden="true"><rect x="0.5" y="0.5" width="9" height="9" rx="1.5" className={className} /></svg>
            {name}
          </span>
        ))}
        <span>{said}</span>
      </figcaption>
    </figure>
  );
});
