// What came in on each of the last days: bars with an axis, and the same in words.
import type { Day } from "./api";
import { count, day } from "./words";
import { h, memo } from "./sdk";

const WIDTH = 280;
const HEIGHT = 90;
const LEFT = 30;
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
  const step = (WIDTH - LEFT) / days.length;
  const said = `today ${count(total(days[days.length - 1]!))}, most ${count(total(best))} on ${day(best.day)}`;
  return (
    <figure className="pgv-chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 14}`} role="img" aria-label={`Stored per day: ${said}`}>
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line x1={LEFT} x2={WIDTH} y1={HEIGHT - share * (HEIGHT - 8)} y2={HEIGHT - share * (HEIGHT - 8)} className="pgv-axis" />
            <text x={LEFT - 4} y={HEIGHT - share * (HEIGHT - 8) + 3} textAnchor="end" className="pgv-axis-text">{count(share * top)}</text>
          </g>
        ))}
        {days.map((each, place) => {
          let base = HEIGHT;
          return (
            <g key={each.day}>
              <title>{`${day(each.day)}: ${STACKS.map(([name]) => `${count(each[name])} ${name}`).join(", ")}`}</title>
              <rect x={LEFT + place * step} y="0" width={step} height={HEIGHT} className="pgv-hover" />
              {STACKS.map(([name, className]) => {
                const height = ((HEIGHT - 8) * each[name]) / top;
                base -= height;
                return <rect key={name} x={LEFT + (place + 0.14) * step} y={base} width={step * 0.72} height={height} className={className} />;
              })}
            </g>
          );
        })}
        <text x={LEFT} y={HEIGHT + 12} className="pgv-axis-text">{day(days[0]!.day)}</text>
        <text x={WIDTH} y={HEIGHT + 12} textAnchor="end" className="pgv-axis-text">{day(days[days.length - 1]!.day)}</text>
      </svg>
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
