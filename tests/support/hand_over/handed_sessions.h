// SPDX-License-Identifier: Apache-2.0
// Sessions whose state is handed over: an example with a program that has greeted, whose
// descriptors stand-ins can replace, and a reader that lets the session server run what it has
// read. tests/unit/session/hand_over_test.cc hands over programs with objects.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rocegw::testing {

std::vector<uint8_t> ExampleOfSessions();
// Returns the reason for which the state was refused; "": it was read.
std::string RunSessions(std::span<const uint8_t> state);

// The same for what never changes while a gateway runs.
std::vector<uint8_t> ExampleOfFoundation();
std::string RunFoundation(std::span<const uint8_t> state);

}  // namespace rocegw::testing
