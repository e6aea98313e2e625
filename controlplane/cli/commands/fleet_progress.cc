// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/commands/fleet_progress.h"

#include <algorithm>
#include <thread>

namespace rocegw::cli {
namespace {

constexpr char kMethod[] = "/rocegw.admin.v1.Gateways/GetFleetProgress";
// Interval between queries; the controller answers from sums that it keeps.
constexpr std::chrono::milliseconds kBetween(200);

}  // namespace

bool AllIsWell(const FleetProgress& progress) {
  return progress.connected() == progress.gateways() && progress.in_sync() == progress.gateways() &&
         progress.unadopted() == 0 && progress.rejecting() == 0 &&
         progress.silent_controllers() == 0;
}

bool AllConnectedRunIt(const FleetProgress& progress) {
  return progress.in_sync() >= progress.connected() && progress.silent_controllers() == 0;
}

std::string ProgressText(const FleetProgress& progress) {
  std::string text = std::to_string(progress.gateways()) +
                     (progress.gateways() == 1 ? " gateway, " : " gateways, ") +
                     std::to_string(progress.connected()) + " connected, " +
                     std::to_string(progress.in_sync()) + " in sync";
  if (progress.rejecting() != 0) text += ", " + std::to_string(progress.rejecting()) + " rejecting";
  if (progress.unadopted() != 0) {
    text += ", " + std::to_string(progress.unadopted()) + " following another store";
  }
  if (const uint32_t silent = progress.silent_controllers(); silent != 0) {
    text += ", without those of " + std::to_string(silent) +
            (silent == 1 ? " controller that does not answer" : " controllers that do not answer");
  }
  return text;
}

CallResult GetProgress(Rpc& rpc, int64_t revision, FleetProgress& out) {
  admin::v1::GetFleetProgressRequest request;
  request.set_revision(revision);
  out.Clear();
  return rpc.Call(kMethod, request, out);
}

CallResult WaitForFleet(Program& program, int64_t revision, bool all_well, FleetProgress& out) {
  const auto end = std::chrono::steady_clock::now() + program.patience();
  Progress line;
  for (;;) {
    if (auto result = GetProgress(program.rpc(), revision, out); !result.ok()) return result;
    if (all_well ? AllIsWell(out) : AllConnectedRunIt(out)) return {};
    if (std::chrono::steady_clock::now() >= end) {
      return {kDeadline,
              "not in time (--timeout): " + ProgressText(out) + "; which ones: rocegwctl status",
              {}};
    }
    line.Show("waiting: " + ProgressText(out));
    std::this_thread::sleep_for(kBetween);
  }
}

}  // namespace rocegw::cli
