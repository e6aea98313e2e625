// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/questions/bounded_plain.h"

#include <algorithm>
#include <cstdint>

namespace rocegw::api {
namespace {

constexpr int64_t kMostApart = int64_t{100} * 365 * 86'400 * 1'000'000'000;

bool CanBe(const types::v1::PlainPath& path) {
  const uint32_t received = path.received();
  return received <= path.sent() && path.reordered() <= received && path.dscp_kept() <= received &&
         uint64_t{path.ecn_kept()} + path.ecn_marked() <= received;
}

}  // namespace

types::v1::PlainPath Bounded(const types::v1::PlainPath& reported) {
  types::v1::PlainPath path = reported;
  if (path.has_clock_ahead_ns())
    path.set_clock_ahead_ns(std::clamp(path.clock_ahead_ns(), -kMostApart, kMostApart));
  if (CanBe(path)) return path;
  for (const auto clear :
       {&types::v1::PlainPath::clear_sent, &types::v1::PlainPath::clear_received,
        &types::v1::PlainPath::clear_reordered, &types::v1::PlainPath::clear_dscp_kept,
        &types::v1::PlainPath::clear_ecn_kept, &types::v1::PlainPath::clear_ecn_marked})
    (path.*clear)();
  path.set_problem("the hosts' counts of datagrams contradict each other");
  return path;
}

}  // namespace rocegw::api
