// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "gateway/metrics/drop_reason.h"
#include "gateway/metrics/worker_counters.h"

namespace rocegw::metrics {
namespace {

enum class Sender { connection, anybody };

struct DropInfo {
  const char* name;
  const char* side;
  bool from_anybody;
  DropReason page;
  const char* help;
};

constexpr DropInfo kDrops[] = {
    {"none", "", false, DropReason::kNone, "the packet was used"},
#define ROCEGW_DROP(name, side, sender, page, help) \
  {#name, #side, Sender::sender == Sender::anybody, DropReason::k_##page, help},
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

bool FromAnybody(DropReason reason) { return kDrops[static_cast<size_t>(reason)].from_anybody; }

DropReason DropReasonOnPage(DropReason reason) {
  return reason < DropReason::kCount ? kDrops[static_cast<size_t>(reason)].page : reason;
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
