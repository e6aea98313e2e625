// SPDX-License-Identifier: Apache-2.0
// Programs whose rings the control thread looks at in each round: those that sent a request lately,
// up to a limit, and those beyond it that woke the thread, until it has read their requests. All
// others must wake the thread, as every program must while the thread sleeps. Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/loop/control_loop.h"

namespace rocegw::session {

// Requests of one program in its rings.
class RingRequests {
 public:
  virtual bool HasRequest() const = 0;
  // Returns true if requests wait that may be read now.
  virtual bool MayRead() const = 0;
  // Reads some requests, as many as of a socket in one round. May remove any program.
  virtual void Read() = 0;
  // Says to the program if it must wake the thread. Requests from before are found by HasRequest.
  virtual void SetAwake(bool awake) = 0;

 protected:
  ~RingRequests() = default;
};

class ActiveRings final : public LoopSource {
 public:
  // Programs beyond this limit wake the thread for each request, unless one of these is idle.
  static constexpr size_t kMost = 32;
  // A program that made no request while the thread slept so often is not looked at any more.
  static constexpr uint32_t kIdleSleeps = 16;

  // Looks at the program's rings from now on; beyond the limit, until they have no requests. Call
  // at each request, and when the program has woken the thread.
  void Note(RingRequests& program);
  void Remove(RingRequests& program);
  size_t size() const { return active_.size(); }

  bool HasWork() const override;
  void Work() override;
  void SetAwake(bool awake) override;

 private:
  struct Active {
    RingRequests* program;  // nullptr: removed during Work
    uint32_t sleeps;        // since its last request
    bool beyond;            // the limit
  };

  Active* Find(const RingRequests& program);
  // Removes the program unless it has a request.
  bool RemoveIdle(size_t index);

  std::vector<Active> active_;
  size_t first_ = 0;  // first program of the next round
  bool working_ = false;
};

}  // namespace rocegw::session
