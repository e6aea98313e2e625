// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/session_table.h"

namespace rocegw::worker {

WorkerSession* SessionTable::Add(const LinkSession& link) {
  auto session = std::make_unique<WorkerSession>();
  WorkerSession* const raw = session.get();
  if (!by_id_.emplace(link.session.value, std::move(session)).second) return nullptr;
  raw->link = link;
  if (free_.empty()) {
    raw->index = {static_cast<uint32_t>(by_index_.size())};
    by_index_.push_back(raw);
  } else {
    raw->index = {free_.back()};
    free_.pop_back();
    by_index_[raw->index.value] = raw;
  }
  return raw;
}

void SessionTable::Remove(WorkerSession& session) {
  by_index_[session.index.value] = nullptr;
  free_.push_back(session.index.value);
  const uint32_t id = session.link.session.value;
  by_id_.erase(id);
}

WorkerSession* SessionTable::Find(SessionId id) const {
  const auto it = by_id_.find(id.value);
  return it == by_id_.end() ? nullptr : it->second.get();
}

verbs::CompletionQueue* SessionTable::CqOf(SessionId id, uint32_t handle) const {
  const WorkerSession* const session = Find(id);
  if (session == nullptr) return nullptr;
  const auto it = session->cqs.find(handle);
  return it == session->cqs.end() ? nullptr : it->second.get();
}

transport::SharedReceives* SessionTable::SrqOf(SessionId id, uint32_t handle) const {
  const WorkerSession* const session = Find(id);
  if (session == nullptr) return nullptr;
  const auto it = session->srqs.find(handle);
  return it == session->srqs.end() ? nullptr : it->second.get();
}

transport::XrcDomain* SessionTable::DomainOf(SessionId id) const {
  const WorkerSession* const session = Find(id);
  return session == nullptr ? nullptr : session->domain.get();
}

void SessionTable::Stop(WorkerSession& session, const char* reason) {
  if (session.failed) return;
  session.failed = true;
  control_.Notify({0, SessionStopped{session.link.session, reason}});
}

}  // namespace rocegw::worker
