// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/node_session.h"

#include <algorithm>
#include <utility>

#include "controlplane/controllers/gateway_config.h"
#include "controlplane/model/plain_text.h"
#include "controlplane/model/push_parts.h"
#include "rocegw/types/v1/reasons.pb.h"

namespace rocegw::sync {

namespace {

// Returns true for reasons that can disappear without a change of the fleet's objects.
bool IsOfTheHost(const std::string& reason) {
  using types::v1::RejectionReason;
  RejectionReason::Value value = RejectionReason::REJECTION_REASON_UNSPECIFIED;
  if (!RejectionReason::Value_Parse(reason, &value)) return false;
  return value == RejectionReason::SOCKET_FAILED || value == RejectionReason::ADDRESS_NOT_HERE ||
         value == RejectionReason::NO_CAPACITY;
}

// Returns the first rejections with their texts truncated: they are stored.
std::vector<types::v1::Rejection> Bounded(
    const google::protobuf::RepeatedPtrField<types::v1::Rejection>& told) {
  std::vector<types::v1::Rejection> kept;
  for (const types::v1::Rejection& one : told) {
    if (kept.size() == NodeSession::kMostRejections) break;
    types::v1::Rejection& rejection = kept.emplace_back();
    rejection.set_object(model::PlainText(one.object(), 128));
    rejection.set_reason(model::PlainText(one.reason(), 64));
    rejection.set_message(model::PlainText(one.message(), 512));
  }
  return kept;
}

}  // namespace

NodeSession::NodeSession(std::string gateway, std::string store_uuid, const fleet::v1::Hello& hello,
                         store::Revision now)
    : gateway_(std::move(gateway)),
      store_uuid_(std::move(store_uuid)),
      desired_(now),
      applied_(hello.store_uuid() == store_uuid_ ? hello.applied_revision() : 0),
      base_(applied_),
      hello_digest_(applied_ == 0 ? 0 : hello.objects_digest()),
      rejections_(Bounded(hello.rejections())) {}

void NodeSession::Touch(const std::set<std::string>& names, store::Revision revision) {
  dirty_.insert(names.begin(), names.end());
  desired_ = std::max(desired_, revision);
}

void NodeSession::TouchAll(store::Revision revision) {
  full_ = true;
  desired_ = std::max(desired_, revision);
}

void NodeSession::Adopt(store::Revision revision) {
  if (!unadopted_) return;
  adopt_ = true;
  TouchAll(revision);
}

std::vector<types::v1::Push> NodeSession::NextPush(const Fleet& fleet) {
  if (!has_next()) return {};
  // Names beyond the limit are not known.
  full_ = full_ || std::exchange(more_rejected_, false);
  std::vector<types::v1::ConfigObject> objects;
  if (full_) {
    const uint64_t has = std::exchange(hello_digest_, 0);
    if (has != 0 && rejections_.empty() &&
        has == controllers::ConfigDigest(fleet.view, fleet.placement, gateway_)) {
      full_ = false;
      dirty_.clear();
      applied_ = desired_ = fleet.view.revision;
      return {};
    }
    objects = controllers::FullConfig(fleet.view, fleet.placement, gateway_);
  } else {
    // Objects that did not fit may fit now.
    for (const types::v1::Rejection& rejection : rejections_) dirty_.insert(rejection.object());
    for (const std::string& name : dirty_) {
      objects.push_back(
          controllers::ConfigOf(fleet.view, fleet.placement, gateway_, model::NameOf(name)));
    }
    controllers::SortForApply(objects);
  }
  dirty_.clear();
  desired_ = std::max(desired_, fleet.view.revision);
  nonce_ = std::to_string(++pushes_);
  types::v1::Push push;
  push.set_nonce(nonce_);
  push.set_store_uuid(store_uuid_);
  push.set_revision(fleet.view.revision);
  push.set_full(full_);
  push.set_adopt(adopt_);
  push.set_base_revision(full_ ? 0 : base_);
  for (types::v1::ConfigObject& object : objects) push.add_objects()->Swap(&object);
  full_ = false;
  adopt_ = false;
  return model::InParts(std::move(push));
}

bool NodeSession::RetryRejected(std::chrono::steady_clock::time_point now) {
  constexpr std::chrono::minutes kRetry(1);
  std::set<std::string> again;
  for (const types::v1::Rejection& rejection : rejections_) {
    if (IsOfTheHost(rejection.reason())) again.insert(rejection.object());
  }
  if (again.empty()) {
    retry_at_.reset();
    return false;
  }
  if (!retry_at_.has_value()) retry_at_ = now + kRetry;
  if (now < *retry_at_ || !MaySend()) return false;
  retry_at_ = now + kRetry;
  dirty_.merge(again);
  return true;
}

bool NodeSession::OnReport(const types::v1::PushReport& report) {
  if (nonce_.empty() || report.nonce() != nonce_) return false;
  nonce_.clear();
  unadopted_ = report.status() == types::v1::UNADOPTED;
  switch (report.status()) {
    case types::v1::APPLIED:
      applied_ = base_ = report.applied_revision();
      rejections_ = Bounded(report.rejections());
      more_rejected_ = static_cast<size_t>(report.rejections_size()) > kMostRejections;
      break;
    case types::v1::UNADOPTED:
      applied_ = report.store_uuid() == store_uuid_ ? report.applied_revision() : 0;
      break;
    default:
      full_ = true;
      break;
  }
  return true;
}

}  // namespace rocegw::sync
