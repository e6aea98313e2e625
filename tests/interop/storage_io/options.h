// SPDX-License-Identifier: Apache-2.0
// What storage_io was asked for on its command line.
#pragma once

#include <cstdint>
#include <string>

namespace rocegw::storage_io {

struct Options {
  bool rdma = true;  // else TCP
  std::string address;
  uint16_t port = 4420;
  uint32_t depth = 32;
  uint32_t block_bytes = 4096;
  uint32_t writes = 0;  // percent
  uint64_t milliseconds = 1000;
  bool verify = false;
};

}  // namespace rocegw::storage_io
