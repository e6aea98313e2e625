// SPDX-License-Identifier: Apache-2.0
// Worker whose state is handed over: an example in the middle of its work, and a reader that lets a
// worker run what it has read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rocegw::testing {

std::vector<uint8_t> ExampleOfWorker();
// Returns the reason for which the state was refused; "": it was read.
std::string RunWorker(std::span<const uint8_t> state);

}  // namespace rocegw::testing
