// SPDX-License-Identifier: Apache-2.0
// Configuration of a replica: lines "key value...".
//
//   name n1
//   number 1                      of this replica in its group, 1 to 255: versions carry it
//   listen 10.0.0.1 7100          address and port of TCP
//   rdma_port 7101
//   transport tcp                 what peers and clients use to reach this replica: tcp or rdma
//   replica n2 10.0.0.2 7100      another replica of the group, once for each
//   folder /var/lib/kv
//   sync yes                      acknowledged values survive a loss of power
//   fallback yes                  where RDMA does not connect, TCP is used without a word
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/kv_store/link.h"

namespace kv {

struct Place {
  std::string name;
  std::string address;
  uint16_t port = 0;
};

struct Settings {
  Place own;
  uint8_t number = 0;
  uint16_t rdma_port = 0;
  Transport transport = Transport::kTcp;
  std::vector<Place> others;
  std::string folder;
  bool sync = true;
  bool fallback = true;
};

// `problem`: why the settings are none.
Settings ReadSettings(const std::string& path, std::string& problem);

// Reads "ADDRESS:PORT,ADDRESS:PORT..."; none if it is not understood.
std::vector<Place> ReadPlaces(const std::string& text);

}  // namespace kv
