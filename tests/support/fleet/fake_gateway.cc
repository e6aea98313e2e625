// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fleet/fake_gateway.h"

#include <utility>

namespace rocegw::testing {

void FakeGateway::Probe(std::function<void(StatusOr<agent::GatewayProbe>)> done) {
  agent::GatewayProbe probe{.started_ns = 1, .status = {}};
  probe.status.set_gateway_version("fake");
  probe.status.add_addresses(address_);
  (void)loop_.Post([done = std::move(done), probe = std::move(probe)] { done(probe); });
}

void FakeGateway::GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)> done) {
  gateway::v1::GetConfigResponse config;
  config.set_source(store_.empty() ? "static" : store_);
  config.set_applied_revision(revision);
  (void)loop_.Post([done = std::move(done), config = std::move(config)] { done(config); });
}

bool FakeGateway::Take(const types::v1::Push& push) {
  const std::lock_guard lock(mutex_);
  if (push.full()) objects_.clear();
  if (!push.full() && (push.store_uuid() != store_ || push.base_revision() != revision))
    return false;
  for (const types::v1::ConfigObject& object : push.objects()) {
    if (object.value_case() == types::v1::ConfigObject::kRemoved) {
      objects_.erase(object.name());
    } else {
      objects_[object.name()] = object.revision();
    }
  }
  return true;
}

void FakeGateway::Apply(const types::v1::Push& push,
                        std::function<void(StatusOr<types::v1::PushReport>)> done) {
  types::v1::PushReport report;
  report.set_store_uuid(store_);
  report.set_applied_revision(revision);
  if (remember_ && !Take(push)) {
    report.set_status(types::v1::NEED_FULL);
  } else {
    store_ = push.store_uuid();
    deliveries += static_cast<uint64_t>(push.objects_size());
    for (const types::v1::ConfigObject& object : push.objects()) {
      if (object.has_pool() && object.pool().spec().quota().peak().qps() == wanted_qps)
        ++pools_with_it;
    }
    report.set_status(types::v1::APPLIED);
    report.set_store_uuid(store_);
    report.set_applied_revision(push.revision());
  }
  (void)loop_.Post([this, done = std::move(done), report = std::move(report)] {
    revision = report.applied_revision();
    done(report);
  });
}

std::map<std::string, int64_t> FakeGateway::Objects() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

void FakeGateway::Ask(const fleet::v1::TunnelQuestion&,
                      std::function<void(fleet::v1::TunnelAnswer)> done) {
  fleet::v1::TunnelAnswer answer;
  answer.mutable_status()->set_version("fake");
  (void)loop_.Post([done = std::move(done), answer = std::move(answer)] { done(answer); });
}

}  // namespace rocegw::testing
