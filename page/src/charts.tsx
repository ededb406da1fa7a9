// Drawings of a few numbers, each with the same in words.
import type { Day } from "./api";
import { count, day, milliseconds, signed } from "./words";
import { h, memo, type Node } from "./sdk";

const WIDTH = 280;
const HEIGHT = 96;

/** Two weeks of growth in the space of a word. */
export const Sparkline = memo(({ values }: { values: number[] }) => {
  const top = Math.max(1, ...values.map(Math.abs));
  const step = 70 / values.length;
  const total = values.reduce((sum, value) => sum + value, 0);
  return (
    <svg className="pgv-sparkline" viewBox="0 0 70 20" role="img" aria-label={`${signed(total)} rows in ${values.length} days`}>
      {values.map((value, place) => {
        const height = value ? Math.max(1.5, (18 * Math.abs(value)) / top) : 0.75;
        return <rect key={place} x={place * step} y={19 - height} width={step - 1.2} height={height} rx="0.8" className={value < 0 ? "pgv-fill-hollow" : value ? "pgv-fill" : "pgv-fill-faint"} />;
      })}
    </svg>
  );
});

interface Stack { name: string; className: string; of(each: Day): number }

function Frame({ title, said, legend, days, isEmpty, children }: { title: string; said: string; legend: [string, string][]; days: Day[]; isEmpty: boolean; children: Node }) {
  const first = days[0];
  const last = days[days.length - 1];
  if (isEmpty) return <figure className="pgv-chart"><figcaption className="pgv-chart-title">{title}</figcaption><p className="pgv-chart-said">{said}</p></figure>;
  return (
    <figure className="pgv-chart">
      <figcaption className="pgv-chart-title">{title}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 14}`} role="img" aria-label={`${title}: ${said}`}>
        <line x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} className="pgv-axis" />
        {children}
        {first && last ? (
          <g className="pgv-axis-text">
            <text x="0" y={HEIGHT + 12}>{day(first.day)}</text>
            <text x={WIDTH} y={HEIGHT + 12} textAnchor="end">{day(last.day)}</text>
          </g>
        ) : null}
      </svg>
      <p className="pgv-chart-said">
        {legend.map(([name, className]) => (
          <span key={name} className="pgv-legend">
            <svg viewBox="0 0 10 10" aria-hidden="true">{className.startsWith("pgv-line") ? <path d="M0,5 L10,5" className={className} /> : <rect x="0.5" y="0.5" width="9" height="9" rx="1.5" className={className} />}</svg>
            {name}
          </span>
        ))}
        <span>{said}</span>
      </p>
    </figure>
  );
}

function Bars({ title, days, stacks, said }: { title: string; days: Day[]; stacks: Stack[]; said: string }) {
  const top = Math.max(1, ...days.map((each) => stacks.reduce((sum, stack) => sum + Math.max(0, stack.of(each)), 0)));
  const step = WIDTH / Math.max(1, days.length);
  return (
    <Frame title={title} said={said} days={days} isEmpty={days.every((each) => stacks.every((stack) => stack.of(each) <= 0))} legend={stacks.map((stack) => [stack.name, stack.className])}>
      {days.map((each, place) => {
        let base = HEIGHT;
        return (
          <g key={each.day}>
            <title>{`${day(each.day)}: ${stacks.map((stack) => `${count(stack.of(each))} ${stack.name}`).join(", ")}`}</title>
            <rect x={place * step} y="0" width={step} height={HEIGHT} className="pgv-hover" />
            {stacks.map((stack) => {
              const height = ((HEIGHT - 4) * Math.max(0, stack.of(each))) / top;
              base -= height;
              return <rect key={stack.name} x={place * step + step * 0.14} y={base} width={step * 0.72} height={height} className={stack.className} />;
            })}
          </g>
        );
      })}
    </Frame>
  );
}

function most(days: Day[], of: (each: Day) => number): string {
  const best = days.reduce<Day | null>((high, each) => (high === null || of(each) > of(high) ? each : high), null);
  return best && of(best) > 0 ? `today ${count(of(days[days.length - 1]!))}, most ${count(of(best))} on ${day(best.day)}` : "none in these two weeks";
}

export const Charts = memo(({ days }: { days: Day[] }) => {
  const written = (each: Day) => each.memories + each.turns;
  const timed = days.filter((each) => each.p95_ms !== null);
  const last = timed[timed.length - 1];
  return (
    <div className="pgv-charts">
      <Bars
        title="Stored per day" days={days} said={most(days, written)}
        stacks={[
          { name: "memories", className: "pgv-fill", of: (each) => each.memories },
          { name: "turns", className: "pgv-fill-hollow", of: (each) => each.turns },
        ]}
      />
      <Bars
        title="Recalls per day" days={days} said={most(days, (each) => each.recalls)}
        stacks={[
          { name: "by meaning and words", className: "pgv-fill", of: (each) => each.recalls - each.degraded },
          { name: "by words only", className: "pgv-fill-hollow", of: (each) => each.degraded },
        ]}
      />
      <Latency days={days} said={last ? `lately ${milliseconds(last.p50_ms!)} in the median, ${milliseconds(last.p95_ms!)} at the 95th percentile` : "no recall in these two weeks"} />
    </div>
  );
});

function Latency({ days, said }: { days: Day[]; said: string }) {
  const top = Math.max(1, ...days.map((each) => each.p95_ms ?? 0));
  const step = WIDTH / Math.max(1, days.length);
  const place = (index: number, value: number) => `${(index + 0.5) * step},${HEIGHT - ((HEIGHT - 16) * value) / top}`;
  const path = (of: (each: Day) => number | null) => {
    let pen = "M";
    return days.map((each, index) => {
      const value = of(each);
      if (value === null) { pen = "M"; return ""; }
      const drawn = `${pen}${place(index, value)}`;
      pen = "L";
      return drawn;
    }).join("");
  };
  return (
    <Frame title="Time of a recall" said={said} days={days} isEmpty={days.every((each) => each.p95_ms === null)} legend={[["95th percentile", "pgv-line"], ["median", "pgv-line pgv-line-dashed"]]}>
      <path d={path((each) => each.p95_ms)} className="pgv-line" />
      <path d={path((each) => each.p50_ms)} className="pgv-line pgv-line-dashed" />
      {days.map((each, index) => (
        <g key={each.day}>
          <title>{each.p95_ms === null ? `${day(each.day)}: no recall` : `${day(each.day)}: median ${milliseconds(each.p50_ms!)}, 95th percentile ${milliseconds(each.p95_ms)}`}</title>
          <rect x={index * step} y="0" width={step} height={HEIGHT} className="pgv-hover" />
          {each.p95_ms === null ? null : <circle cx={(index + 0.5) * step} cy={HEIGHT - ((HEIGHT - 16) * each.p95_ms) / top} r="2.4" className="pgv-fill" />}
        </g>
      ))}
      <line x1="0" x2={WIDTH} y1="16" y2="16" className="pgv-axis pgv-axis-top" />
      <text x="0" y="12" className="pgv-axis-text">{milliseconds(top)}</text>
    </Frame>
  );
}
