// SPDX-License-Identifier: Apache-2.0
// rocegw-memory blocks: offers memory of this host as a shared block pool until it is asked to
// stop.
#pragma once

#include <cstdint>
#include <string>

namespace rocegw::far {

struct BlocksArguments {
  std::string address;  // empty: all
  std::string port;
  std::string metrics;  // "ADDRESS:PORT"; empty: none
  std::string secret;   // file
  uint64_t bytes = 0;
  uint64_t block_bytes = 64 << 10;
  std::string announce;  // folder in which the agent looks for donors; empty: none
  std::string name = "blocks";
  std::string pool = "blocks";
  std::string tenant = "default";
  std::string version;
};

// Returns the exit status.
int ServeBlocks(const BlocksArguments& arguments);

}  // namespace rocegw::far
