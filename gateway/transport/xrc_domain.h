// SPDX-License-Identifier: Apache-2.0
// An XRC domain (IBTA annex A14) on its worker: the shared receive queues in it, which belong to
// several sessions, and the queue pairs that deliver into them. A message names the queue that it
// is for; no other domain's queue is ever found here. Belongs to one worker.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gateway/transport/shared_receives.h"
#include "gateway/verbs/completion_queue.h"

namespace rocegw::transport {

// A shared receive queue of the domain; what it points to outlives it.
struct XrcReceiver {
  SharedReceives* receives = nullptr;
  verbs::CompletionQueue* cq = nullptr;
  void* owner = nullptr;  // QpContext::owner of who has it
};

// Who remembers receivers of a domain.
class XrcMember {
 public:
  virtual ~XrcMember() = default;
  // That queue is about to go, with its owner's memory perhaps.
  virtual void Forget(uint32_t number) = 0;
};

class XrcDomain {
 public:
  // False: there is one of that number.
  bool Add(const XrcReceiver& receiver);
  void Remove(uint32_t number);
  // nullptr: there is none. Valid until it is removed.
  const XrcReceiver* Find(uint32_t number) const;

  void Join(XrcMember& member) { members_.push_back(&member); }
  void Leave(XrcMember& member);

 private:
  std::unordered_map<uint32_t, XrcReceiver> receivers_;
  std::vector<XrcMember*> members_;
};

}  // namespace rocegw::transport
