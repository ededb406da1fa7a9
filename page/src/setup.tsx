// Setting up: all of doctor's checks with their commands.
import { type Health } from "./api";
import { Checks } from "./health";
import { useLoad } from "./load";
import { Command, Trouble, Waiting } from "./parts";
import { Button, Card, CardContent, CardHeader, CardTitle, Fragment, h } from "./sdk";

export function SetupView() {
  const checks = useLoad<Health>("checks");
  return (
    <div className="pgv-stack">
      <Card>
        <CardHeader className="pgv-head">
          <CardTitle>Checks</CardTitle>
          <Button size="sm" outlined onClick={checks.reload}>Check again</Button>
        </CardHeader>
        <CardContent>
          {checks.error ? <Trouble error={checks.error} reload={checks.reload} /> : null}
          {checks.data ? (
            <Fragment>
              <p role="status"><strong>{checks.data.summary}</strong></p>
              {checks.data.set_up ? null : <p>One command sets up the database, the plugin folder and the settings: <Command text="hermes-pgvector up" /></p>}
              <Checks checks={checks.data.checks} />
            </Fragment>
          ) : checks.error ? null : <Waiting what="every part, which may take some seconds" />}
        </CardContent>
      </Card>
    </div>
  );
}
