// SPDX-License-Identifier: Apache-2.0
// Where the data of a space is: what a later process needs to continue the session at its donors.
// A value, and its form in a file. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocegw::far {

struct Placement {
  struct Donor {
    std::string host;
    std::string port;
    std::string failure_domain;
    std::string name;
    // Proof by which the donor recognizes the session (SessionProof).
    uint64_t session = 0;
    uint64_t secret = 0;
    bool operator==(const Donor&) const = default;
  };
  struct Replica {
    uint32_t donor = 0;  // index in `donors`
    uint64_t lease = 0;
    uint64_t address = 0;
    uint32_t key = 0;
    bool whole = false;  // has all data; false: data was still being copied to it
    bool operator==(const Replica&) const = default;
  };
  struct Range {  // bytes of the slab, whole pages
    uint64_t begin = 0;
    uint64_t end = 0;
    bool operator==(const Range&) const = default;
  };
  struct Slab {
    std::vector<Replica> replicas;  // at least one is whole, if there are any
    std::vector<Range> lost;        // pages whose data is lost
    bool operator==(const Slab&) const = default;
  };

  static constexpr size_t kMostDonors = 64;
  static constexpr uint64_t kPageBytes = 4096;

  std::string tenant;
  uint64_t slab_bytes = 0;
  std::vector<Donor> donors;
  std::vector<Slab> slabs;

  bool operator==(const Placement&) const = default;
};

std::string Encode(const Placement& placement);
// nullopt: the text is no placement.
std::optional<Placement> DecodePlacement(std::string_view text);

}  // namespace rocegw::far
