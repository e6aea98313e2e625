// SPDX-License-Identifier: Apache-2.0
// Hub of the agents' tunnels: passes questions to gateways and their answers back. Keeps the
// waiting questions and their deadlines; does not interpret either. Owns a thread for the
// deadlines. Any thread may call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/sync/node_hub.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::sync {

// Tunnel to one agent. Called under the hub's lock: functions must not block or call the hub.
class TunnelStream {
 public:
  virtual ~TunnelStream() = default;
  virtual void Send(const fleet::v1::TunnelQuestion& question) = 0;
  virtual void Close(StreamEnd why) = 0;
};

// Result as a gRPC code. OK: the parts of the answer in order.
struct TunnelResult {
  int code = 0;
  std::string message;
  std::vector<fleet::v1::TunnelAnswer> parts;
};

class TunnelHub {
 public:
  using Clock = std::chrono::system_clock;
  using StreamId = uint64_t;
  using QuestionId = uint64_t;
  using Done = std::function<void(TunnelResult)>;
  using Part = std::function<void(const fleet::v1::TunnelAnswer&)>;
  // Limit of an answer that is stored; more is a fault of the agent.
  static constexpr size_t kMostAnswerBytes = 8 << 20;

  TunnelHub();
  ~TunnelHub();
  TunnelHub(const TunnelHub&) = delete;
  TunnelHub& operator=(const TunnelHub&) = delete;

  // Adds a tunnel; closes an older one of the gateway, whose questions fail.
  StreamId Attach(const std::string& gateway, std::shared_ptr<TunnelStream> stream);
  void OnAnswer(const std::string& gateway, StreamId id, const fleet::v1::TunnelAnswer& answer);
  void Detach(const std::string& gateway, StreamId id);
  // Returns true if the gateway's tunnel ends here.
  bool Has(const std::string& gateway);

  // Calls `done` once, on any thread, maybe before it returns; without a lock.
  void Ask(const std::string& gateway, fleet::v1::TunnelQuestion question,
           Clock::time_point deadline, Done done);

  // Asks for an answer of any length, passed part by part, then `done` with a result without parts.
  // The gateway may send `window` parts before its last one, and as many more as are granted; the
  // question fails if it sends more. Parts arrive sequentially, on any thread, without a lock; one
  // may still be running when `done` is called. Returns the question's id, which is in every part;
  // 0: there is no tunnel, and `done` was called.
  QuestionId AskInParts(const std::string& gateway, fleet::v1::TunnelQuestion question,
                        Clock::time_point deadline, uint32_t window, Part part, Done done);
  void Grant(QuestionId question, uint32_t parts);
  // Cancels a question: `done` is called with CANCELLED, unless it was called before.
  void Cancel(QuestionId question);

 private:
  struct Waiting {
    std::string gateway;
    Clock::time_point deadline;
    Done done;
    std::vector<fleet::v1::TunnelAnswer> parts;
    size_t bytes = 0;            // sum of `parts`
    std::shared_ptr<Part> part;  // set: parts are passed on and not stored
    uint64_t granted = 0;        // parts that the gateway may still send, if they are passed on
  };
  struct Tunnel {
    StreamId id = 0;
    std::shared_ptr<TunnelStream> stream;
  };

  void Run();
  // Counts or stores an answer. Returns nullptr, or what is wrong with it.
  static const char* Take(Waiting& waiting, const fleet::v1::TunnelAnswer& answer);
  // Returns the question's id; 0: there is no tunnel, and `waiting` is unchanged.
  QuestionId Send(fleet::v1::TunnelQuestion& question, Waiting& waiting);
  // Cancels the question at the agent; the caller removes it.
  void SendCancel(QuestionId question, const std::string& gateway);
  // Removes the questions of a gateway whose tunnel is gone.
  std::vector<Done> TakeOf(const std::string& gateway);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Tunnel> tunnels_;
  std::map<uint64_t, Waiting> waiting_;  // by question
  StreamId last_stream_ = 0;
  uint64_t last_question_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocegw::sync
