// SPDX-License-Identifier: Apache-2.0
// XRC domain (IBTA annex A14) on its worker: its shared receive queues, which belong to several
// sessions, and the queue pairs that deliver into them. A message names its shared receive queue,
// and only queues of this domain are found. Belongs to one worker.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gateway/transport/queues/shared_receives.h"
#include "gateway/verbs/completion_queue.h"

namespace rocegw::transport {

// Shared receive queue of the domain. The pointers must stay valid until it is removed.
struct XrcReceiver {
  SharedReceives* receives = nullptr;
  verbs::CompletionQueue* cq = nullptr;
  SessionIndex owner;  // QpContext::owner of the session that owns the queue
};

// Object that remembers receivers of a domain.
class XrcMember {
 public:
  virtual ~XrcMember() = default;
  // Forgets the queue, which is about to be destroyed, perhaps with its owner's memory.
  virtual void Forget(uint32_t number) = 0;
};

class XrcDomain {
 public:
  // Adds a receiver. Returns false if the number is in use.
  bool Add(const XrcReceiver& receiver);
  void Remove(uint32_t number);
  // Returns nullptr if there is no such queue. The pointer is valid until Remove.
  const XrcReceiver* Find(uint32_t number) const;

  void Join(XrcMember& member) { members_.push_back(&member); }
  void Leave(XrcMember& member);

 private:
  std::unordered_map<uint32_t, XrcReceiver> receivers_;
  std::vector<XrcMember*> members_;
};

}  // namespace rocegw::transport
