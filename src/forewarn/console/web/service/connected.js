/** The console's connection to its server, shared by all modules. */

import { FleetCopy } from "./fleet_copy.js";
import { OperatorApi } from "./operator_api.js";
import { RecordStream } from "./record_stream.js";
import { ServiceClock } from "./service_clock.js";

export const api = new OperatorApi();
export const clock = new ServiceClock(api);
export const stream = new RecordStream(api);
export const copy = new FleetCopy(api, stream, clock);
