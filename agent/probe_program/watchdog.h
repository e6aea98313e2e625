// SPDX-License-Identifier: Apache-2.0
// A thread that ends the process, whatever the others wait for: when its standard input ends, which
// is how an agent that is gone or has had enough lets it go, and when the time is over, which it
// tells. Started once.
#pragma once

#include <chrono>
#include <string>

namespace rocegw::probe {

void StartWatchdog(std::chrono::milliseconds time);
// What the time would be over in, for people: "connecting to 192.0.2.1". Any thread.
void SetStage(const std::string& stage);
// A line for the agent, whole.
void Tell(const std::string& line);

}  // namespace rocegw::probe
