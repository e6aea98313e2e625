// SPDX-License-Identifier: Apache-2.0
// The bpf(2) commands that the XDP program needs. Each returns a result or an errno value; the
// caller writes the text for a person. Called by the control thread and, for maps, by workers; no
// call waits.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <string>

#include "gateway/base/unique_fd.h"

namespace rocegw::port {

// Result of a command that makes an object.
struct BpfObject {
  UniqueFd fd;
  int error = 0;  // errno; 0: fd is valid
};

struct BpfMapShape {
  uint32_t type = 0;  // bpf_map_type
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;
  uint32_t entries = 0;
};

BpfObject MakeBpfMap(const BpfMapShape& shape);
// Sets or removes one entry. Returns 0 or errno.
int SetBpfMapEntry(int map, const void* key, const void* value);
int RemoveBpfMapEntry(int map, const void* key);

// Loads a program of type XDP. `log` receives the verifier's words if it refuses the program.
BpfObject LoadXdpProgram(std::span<const bpf_insn> instructions, uint32_t flags, std::string& log);

// Attaches the program to an interface for as long as the descriptor is open. flags:
// XDP_FLAGS_DRV_MODE or XDP_FLAGS_SKB_MODE (linux/if_link.h).
BpfObject AttachXdpProgram(int program, unsigned interface_index, uint32_t flags);

}  // namespace rocegw::port
