// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/events/event_limits.h"

#include "gateway/session/objects/session_costs.h"
#include "gateway/session/objects/session_quota.h"
#include "gateway/session/services.h"
#include "gateway/tenant/heap_cost.h"

namespace rocegw::session {
namespace {

// Limit of waiting events besides those of each object: for multicast groups, of which an id may
// have many.
constexpr size_t kEventsAhead = 1024;

}  // namespace

bool EventLimits::full() const {
  return objects_.contexts.size() + objects_.channels.size() + objects_.cm_channels.size() >=
         most_channels();
}

uint32_t EventLimits::most_channels() const { return services_.options.session.event_channels; }

StatusOr<EventPair> EventLimits::NewPair(tenant::Charge& descriptors) {
  if (const int error = quota_.Take(Resource::kDescriptors, kDescriptorsOfPart, descriptors))
    return Status(error, "event channel: limit of the pool");
  auto pair = MakeEventPair();
  if (!pair.ok()) {
    descriptors.Reset();
    const tenant::Pool& pool = quota_.pool();
    services_.reports.Tell("QUOTA_EXCEEDED", pool.name(), "descriptors",
                           pool.name() + ": " + pair.status().text());
  }
  return pair;
}

size_t EventLimits::MostAhead() const {
  const size_t objects = objects_.cm_ids.size() + objects_.qps.size() + objects_.cqs.size() +
                         objects_.srqs.size() + objects_.contexts.size();
  return kEventsAhead + objects * tenant::kEventsPerObject;
}

}  // namespace rocegw::session
