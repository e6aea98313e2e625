// SPDX-License-Identifier: Apache-2.0
// Sessions of one worker, by id for control messages and by index for their objects. Belongs to the
// worker.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/worker/control/control_sender.h"
#include "gateway/worker/objects/worker_session.h"

namespace rocegw::worker {

class SessionTable {
 public:
  // The sender must outlive the table.
  explicit SessionTable(ControlSender& control) : control_(control) {}

  // Adds a session. Returns nullptr if the id is in use.
  WorkerSession* Add(const LinkSession& link);
  // Removes a session whose queue pairs, CQs and regions are unlinked.
  void Remove(WorkerSession& session);

  // Return nullptr if there is no such object.
  WorkerSession* Find(SessionId id) const;
  verbs::CompletionQueue* CqOf(SessionId id, uint32_t handle) const;
  transport::SharedReceives* SrqOf(SessionId id, uint32_t handle) const;
  transport::XrcDomain* DomainOf(SessionId id) const;

  // Return the session that owns the object, which must be linked.
  WorkerSession& Of(const transport::QpContext& qp) const { return *by_index_[qp.owner.value]; }
  WorkerSession& Of(const verbs::CompletionQueue& cq) const { return *by_index_[cq.owner.value]; }

  // Ignores the session from now on and asks the control thread to close it. `reason` is a string
  // literal.
  void Stop(WorkerSession& session, const char* reason);

  const std::unordered_map<uint32_t, std::unique_ptr<WorkerSession>>& all() const { return by_id_; }

 private:
  ControlSender& control_;
  std::unordered_map<uint32_t, std::unique_ptr<WorkerSession>> by_id_;
  std::vector<WorkerSession*> by_index_;
  std::vector<uint32_t> free_;  // indices
};

}  // namespace rocegw::worker
