// SPDX-License-Identifier: Apache-2.0
// Messages between initiator and target, in the sizes of NVMe over Fabrics: a command of 64 bytes,
// a response of 16. Both ends are built from this file.
#pragma once

#include <cstdint>

namespace rocegw::storage_io {

enum class Operation : uint32_t { kRead = 1, kWrite = 2 };

struct Command {
  uint32_t slot;  // initiator's number of the request; returned in the response
  Operation operation;
  uint32_t block;
  uint32_t bytes;
  uint64_t address;  // initiator's memory (RDMA only)
  uint32_t rkey;
  uint8_t reserved[36];
};
static_assert(sizeof(Command) == 64);

struct Response {
  uint32_t slot;
  uint32_t failed;  // the target found a block that is not whole
  uint64_t reserved;
};
static_assert(sizeof(Response) == 16);

}  // namespace rocegw::storage_io
