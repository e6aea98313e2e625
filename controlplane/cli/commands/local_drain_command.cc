// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/commands/local_drain_command.h"

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include "controlplane/cli/printing.h"
#include "rocegw/gateway/v1/config.pb.h"

namespace rocegw::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(200);

}  // namespace

int OrderLocalDrain(Program& program, const LocalDrain& order) {
  if (auto result = program.Open(); !result.ok()) return Fail(result);
  const auto end = std::chrono::steady_clock::now() + program.patience();
  Progress line;
  gateway::v1::DrainRequest request;
  request.set_drain(order.drain);
  gateway::v1::DrainResponse response;
  for (;;) {
    response.Clear();
    const CallResult result =
        program.rpc().Call("/rocegw.gateway.v1.ConfigService/Drain", request, response);
    if (!result.ok()) return Fail(result);
    const types::v1::DrainProgress& left = response.progress();
    if (!request.drain() || !order.wait || left.empty()) break;
    const std::string holds = std::to_string(left.sessions()) + " sessions, " +
                              std::to_string(left.qps()) + " queue pairs left";
    if (std::chrono::steady_clock::now() + kBetweenLooks > end)
      return Fail({kDeadline, "not empty in time (--timeout): " + holds, {}});
    line.Show(holds);
    std::this_thread::sleep_for(kBetweenLooks);
    if (order.goes_on && !order.goes_on()) request.set_drain(false);
  }
  if (PrintDocument(program, NamedMessages{{"drain", &response}})) return kOk;
  if (response.admin_state() == types::v1::DRAINING) {
    std::cout << (response.progress().empty() ? "drained\n" : "draining\n");
  } else {
    std::cout << "in service\n";
  }
  return kOk;
}

}  // namespace rocegw::cli
