// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/chaos/workload.h"

#include "controlplane/store/random_uuid.h"
#include "rocegw/admin/v1/cc_policies.grpc.pb.h"
#include "rocegw/admin/v1/pools.grpc.pb.h"
#include "tests/support/fleet/agent_fleet.h"

namespace rocegw::testing::chaos {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;

constexpr size_t kPolicies = 2;  // of a client; each goes to all gateways
constexpr size_t kPools = 30;
constexpr size_t kGatewaysPerPool = 5;
constexpr milliseconds kDeadline(4000);
constexpr milliseconds kRetry(50);
constexpr milliseconds kLongestPause(40);
constexpr uint64_t kLeastWindow = 65536;

std::unique_ptr<grpc::ClientContext> Context() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + kDeadline);
  return context;
}

bool IsPolicy(const std::string& name) { return name.starts_with("ccPolicies/"); }

// Done or not: the answer did not come, or nobody could do it now.
bool MayWorkLater(const grpc::Status& status) {
  switch (status.error_code()) {
    case StatusCode::UNAVAILABLE:
    case StatusCode::DEADLINE_EXCEEDED:
    case StatusCode::CANCELLED:
    case StatusCode::ABORTED:
    case StatusCode::UNKNOWN:
      return true;
    default:
      return false;
  }
}

}  // namespace

grpc::Status ReadObject(const std::shared_ptr<grpc::Channel>& channel, const std::string& name,
                        uint64_t& number) {
  grpc::Status status;
  if (IsPolicy(name)) {
    admin::v1::GetCcPolicyRequest request;
    request.set_name(name);
    types::v1::CcPolicy policy;
    status =
        admin::v1::CcPolicies::NewStub(channel)->GetCcPolicy(Context().get(), request, &policy);
    number = policy.spec().window_bytes() - kLeastWindow;
  } else {
    admin::v1::GetPoolRequest request;
    request.set_name(name);
    types::v1::Pool pool;
    status = admin::v1::Pools::NewStub(channel)->GetPool(Context().get(), request, &pool);
    number = pool.spec().quota().peak().qps();
  }
  if (status.error_code() != StatusCode::NOT_FOUND) return status;
  number = 0;
  return grpc::Status::OK;
}

Client::Client(size_t number, uint64_t seed, const Channels& channels, size_t agents, EventLog& log)
    : number_(number), random_(seed), channels_(channels), agents_(agents), log_(log) {
  const std::string id = std::to_string(number);
  for (size_t i = 0; i < kPolicies; ++i) objects_["ccPolicies/w" + id + "-" + std::to_string(i)];
  for (size_t i = 0; i < kPools; ++i) objects_["tenants/w" + id + "/pools/p" + std::to_string(i)];
  thread_ = std::thread([this] { Run(); });
}

Client::~Client() { Stop(); }

void Client::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool Client::Pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

void Client::Fail(const std::string& what) {
  log_.Note("client " + std::to_string(number_) + ": " + what);
  if (problem_.empty()) problem_ = what;
}

void Client::Run() {
  do {
    WriteOne();
  } while (problem_.empty() &&
           Pause(milliseconds(random_.Below(static_cast<size_t>(kLongestPause.count())))));
}

void Client::WriteOne() {
  // One write in ten is a policy.
  const bool policy = random_.Below(10) == 0;
  const std::string id = std::to_string(number_);
  const std::string name =
      policy ? "ccPolicies/w" + id + "-" + std::to_string(random_.Below(kPolicies))
             : "tenants/w" + id + "/pools/p" + std::to_string(random_.Below(kPools));
  Register& object = objects_[name];
  const bool remove = object.acknowledged != 0 && random_.Below(8) == 0;
  object.attempted = remove ? 0 : next_value_++;
  const std::string request_id = store::RandomUuid();
  for (;;) {
    const grpc::Status status = Try(name, object.attempted, request_id);
    ++attempts_;
    if (status.ok()) break;
    if (!MayWorkLater(status)) {
      return Fail(name + ": " + std::to_string(status.error_code()) + " " + status.error_message());
    }
    if (!Pause(kRetry)) return;
  }
  object.acknowledged = object.attempted;
  acknowledged_.push_back(request_id);
  if (random_.Below(4) == 0) CheckRead(name);
}

grpc::Status Client::Try(const std::string& name, uint64_t value, const std::string& request_id) {
  const auto& channel = channels_[random_.Below(channels_.size())];
  const auto context = Context();
  if (IsPolicy(name)) {
    const auto policies = admin::v1::CcPolicies::NewStub(channel);
    if (value == 0) {
      admin::v1::DeleteCcPolicyRequest request;
      request.set_name(name);
      request.set_request_id(request_id);
      admin::v1::DeleteCcPolicyResponse response;
      return policies->DeleteCcPolicy(context.get(), request, &response);
    }
    admin::v1::UpdateCcPolicyRequest request;
    request.mutable_cc_policy()->set_name(name);
    request.mutable_cc_policy()->mutable_spec()->set_window_bytes(kLeastWindow + value);
    request.set_allow_missing(true);
    request.set_request_id(request_id);
    types::v1::CcPolicy response;
    return policies->UpdateCcPolicy(context.get(), request, &response);
  }
  const auto pools = admin::v1::Pools::NewStub(channel);
  if (value == 0) {
    admin::v1::DeletePoolRequest request;
    request.set_name(name);
    request.set_request_id(request_id);
    admin::v1::DeletePoolResponse response;
    return pools->DeletePool(context.get(), request, &response);
  }
  admin::v1::UpdatePoolRequest request;
  request.mutable_pool()->set_name(name);
  auto& spec = *request.mutable_pool()->mutable_spec();
  spec.mutable_quota()->mutable_peak()->set_qps(value);
  // The value decides, so that the same request is the same.
  for (size_t i = 0; i < kGatewaysPerPool; ++i)
    spec.mutable_gateways()->add_names(
        AgentFleet::NameOf((value * 13 + i * (agents_ / kGatewaysPerPool)) % agents_));
  request.set_allow_missing(true);
  request.set_request_id(request_id);
  types::v1::Pool response;
  return pools->UpdatePool(context.get(), request, &response);
}

// A read that begins after a write was acknowledged sees it, at any controller.
void Client::CheckRead(const std::string& name) {
  uint64_t number = 0;
  const grpc::Status status = ReadObject(channels_[random_.Below(channels_.size())], name, number);
  if (!status.ok()) return;
  ++reads_;
  const uint64_t expected = objects_[name].acknowledged;
  if (number != expected) {
    Fail(name + ": read " + std::to_string(number) + " after " + std::to_string(expected) +
         " was acknowledged");
  }
}

}  // namespace rocegw::testing::chaos
