// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "gateway/metrics/drop_reason.h"
#include "gateway/metrics/worker_counters.h"

namespace rocegw::metrics {
namespace {

struct DropInfo {
  const char* name;
  const char* side;
  const char* help;
};

constexpr DropInfo kDrops[] = {
    {"none", "", "the packet was used"},
#define ROCEGW_DROP(name, side, help) {#name, #side, help},
#include "gateway/metrics/drop_reasons.def"
#undef ROCEGW_DROP
};

constexpr CounterInfo kCounters[] = {
#define ROCEGW_COUNTER(name, unit, help) \
  {#name, #unit, help, [](const WorkerCounters& w) -> const Counter& { return w.name##_##unit; }},
#include "gateway/metrics/counters.def"
#undef ROCEGW_COUNTER
};

}  // namespace

const char* DropReasonName(DropReason reason) {
  return reason < DropReason::kCount ? kDrops[static_cast<size_t>(reason)].name : "invalid";
}

const char* DropReasonSide(DropReason reason) {
  return reason < DropReason::kCount ? kDrops[static_cast<size_t>(reason)].side : "";
}

DropReason DropReasonOnPage(DropReason reason) {
  switch (reason) {
    case DropReason::k_unknown_qpn:
    case DropReason::k_wrong_service:
    case DropReason::k_wrong_address:
    case DropReason::k_peer_not_allowed:
    case DropReason::k_wrong_qkey:
    case DropReason::k_qp_state:
    case DropReason::k_sequence_gap:
    case DropReason::k_duplicate_request:
    case DropReason::k_duplicate_invalid:
    case DropReason::k_stale_response:
    case DropReason::k_response_gap:
    case DropReason::k_unknown_channel:
    case DropReason::k_channel_epoch:
    case DropReason::k_channel_state:
    case DropReason::k_channel_window:
    case DropReason::k_channel_duplicate:
    case DropReason::k_endpoint_not_ready:
    case DropReason::k_wrong_tenant:
    case DropReason::k_channel_no_tag:
    case DropReason::k_channel_replayed:
    case DropReason::k_channel_no_seal:
    case DropReason::k_channel_key:
    case DropReason::k_channel_old:
      return DropReason::k_unexpected;
    case DropReason::k_cm_state:
      return DropReason::k_cm_unmatched;
    default:
      return reason;
  }
}

const char* DropReasonHelp(DropReason reason) {
  return reason < DropReason::kCount ? kDrops[static_cast<size_t>(reason)].help : "";
}

std::span<const CounterInfo> AllCounters() { return kCounters; }

std::string CounterName(const CounterInfo& info) {
  std::string name = info.name;
  const std::string_view unit = info.unit;
  const std::string_view single = unit.substr(0, unit.size() - 1);
  if (name.ends_with(unit)) return name;
  if (name.ends_with(single)) return name + "s";
  return name.append("_").append(unit);
}

}  // namespace rocegw::metrics
