// SPDX-License-Identifier: Apache-2.0
// Thread that ends the process whatever the others wait for: when its standard input ends, since
// the agent is gone or has finished, and at the time limit, which it reports. Started once.
#pragma once

#include <chrono>
#include <string>

namespace rocegw::probe {

void StartWatchdog(std::chrono::milliseconds time);
// Sets the stage for the report of a timeout: "connecting to 192.0.2.1". Any thread.
void SetStage(const std::string& stage);
// Writes a complete line for the agent.
void Tell(const std::string& line);

}  // namespace rocegw::probe
