// SPDX-License-Identifier: Apache-2.0
#include "agent/reconcile/desired_config.h"

#include <utility>

#include "controlplane/model/objects_digest.h"

namespace rocegw::agent {

using types::v1::ConfigObject;
using types::v1::Push;

DesiredConfig::Verdict DesiredConfig::Judge(const Push& first) const {
  const bool same_store = first.store_uuid() == store_uuid_;
  if (!first.adopt() && !store_uuid_.empty()) {
    if (!same_store || first.revision() < revision_) return Verdict::kUnadopted;
  }
  if (first.full()) return Verdict::kTaken;
  return same_store && first.base_revision() == revision_ ? Verdict::kTaken : Verdict::kNeedFull;
}

DesiredConfig::Verdict DesiredConfig::Take(const Push& part) {
  // Incomplete parts of another push are obsolete.
  if (parts_.has_value() && parts_->nonce() != part.nonce()) parts_.reset();
  if (!parts_.has_value()) {
    gathered_bytes_ = 0;
    parts_ = part;
  } else {
    parts_->MergeFrom(part);
    parts_->set_more(part.more());
  }
  gathered_bytes_ += part.ByteSizeLong();
  if (gathered_bytes_ > kMostBytes) {
    parts_.reset();
    return Verdict::kNeedFull;
  }
  if (parts_->more()) return Verdict::kIncomplete;
  const Verdict verdict = Judge(*parts_);
  if (verdict == Verdict::kTaken) Merge();
  parts_.reset();
  return verdict;
}

void DesiredConfig::Merge() {
  if (parts_->full()) objects_.clear();
  for (ConfigObject& object : *parts_->mutable_objects()) {
    if (object.value_case() == ConfigObject::kRemoved) {
      objects_.erase(object.name());
    } else {
      objects_[object.name()].Swap(&object);
    }
  }
  confirmed_ = confirmed_ && store_uuid_ == parts_->store_uuid();
  adopt_ = parts_->adopt();
  store_uuid_ = parts_->store_uuid();
  revision_ = parts_->revision();
}

Push DesiredConfig::Full() const {
  Push push;
  push.set_store_uuid(store_uuid_);
  push.set_revision(revision_);
  push.set_full(true);
  push.set_adopt(confirmed_ || adopt_);
  // In the order of application; the gateway rejects objects unknown to this version.
  for (const auto value : {ConfigObject::kGateway, ConfigObject::kCcPolicy, ConfigObject::kTenant,
                           ConfigObject::kPool, ConfigObject::kPeer, ConfigObject::VALUE_NOT_SET}) {
    for (const auto& [name, object] : objects_) {
      if (object.value_case() == value) *push.add_objects() = object;
    }
  }
  return push;
}

types::v1::AppliedConfig DesiredConfig::Saved() const {
  types::v1::AppliedConfig saved;
  saved.set_store_uuid(store_uuid_);
  saved.set_revision(revision_);
  for (const auto& [name, object] : objects_) *saved.add_objects() = object;
  return saved;
}

bool DesiredConfig::Restore(const types::v1::AppliedConfig& saved) {
  if (saved.store_uuid().empty()) return false;
  store_uuid_ = saved.store_uuid();
  revision_ = saved.revision();
  confirmed_ = true;
  objects_.clear();
  for (const ConfigObject& object : saved.objects()) objects_[object.name()] = object;
  return true;
}

uint64_t DesiredConfig::Digest() const {
  model::ObjectsDigest digest;
  for (const auto& [name, object] : objects_) digest.Add(object);
  return digest.value();
}

const ConfigObject* DesiredConfig::Find(const std::string& name) const {
  const auto at = objects_.find(name);
  return at == objects_.end() ? nullptr : &at->second;
}

}  // namespace rocegw::agent
