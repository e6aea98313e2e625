// SPDX-License-Identifier: Apache-2.0
// The gateway of one process, inside of it (docs/user/in_process.md): the daemon's data path with
// its control loop and its worker in threads of their own, which take no signals, share no
// descriptor with the program, and leave the process to it. Program and engine meet as elsewhere:
// on attach connections and the shared memory that goes over them. The threads of a process are not
// in its children: there an engine is of no use.
//
// Calls: one at a time, from any thread of the program. Errors name what is wrong and the remedy.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/datapath/config.h"
#include "gateway/datapath/data_path.h"
#include "gateway/session/state/log_limiter.h"

namespace rocegw::inprocess {

class Engine {
 public:
  // keep_stderr: `log` writes there. The log is called by the engine's threads. With
  // config.guest_rounds descriptors are shared with the program after all: its threads use them.
  Engine(datapath::Config config, session::Log log, bool keep_stderr);
  // Stop, if nobody did.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Everything runs, or nothing.
  Status Start();
  // A connection to it. EOWNERDEAD in a child of the process that has started it, EPIPE when the
  // program has closed our descriptor.
  StatusOr<UniqueFd> Attach();
  // Sessions end, peers are told, threads end. False: not in that time; the threads may still run,
  // and nothing of this object may go.
  bool Stop(Duration within);

  // A round of the worker on the calling thread, with config.guest_rounds; any thread, any time.
  void Progress();

  // What programs choose of a gateway inside of them.
  struct Wishes {
    // The only one that it uses; nothing: every address of the interface with the default route.
    std::optional<wire::Gid> address;
    bool run_in_poll = false;  // Progress may be called
    bool placement = false;    // FLUSH and ATOMIC WRITE
  };
  // What it is made from: one worker, memory where it is.
  static datapath::Config ConfigFor(const Wishes& wishes);

 private:
  enum class Order : char { kAttach = 'a', kStop = 's' };
  enum class Stage { kStarting, kRunning, kFailed, kStopped };

  void Run(int orders);
  void Serve(int orders);
  void TurnGuestsAway();
  void SetStage(Stage stage, Status status = OkStatus());
  bool Send(Order order, int descriptor) const;
  static bool Receive(int orders, Order& order, UniqueFd& descriptor);

  const datapath::Config config_;
  const session::Log log_;
  const bool keep_stderr_;
  pid_t process_ = 0;
  // The program's end of what orders go over. Who closes all descriptors closes it too, and its
  // number may then be somebody else's: compared before use.
  UniqueFd orders_;
  dev_t orders_device_ = 0;
  ino_t orders_inode_ = 0;
  std::thread thread_;
  // Where guests go; nullptr before and after. Who ends the data path waits for those inside.
  std::atomic<datapath::DataPath*> open_to_guests_{nullptr};
  std::atomic<uint32_t> guests_{0};

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Stage stage_ = Stage::kStarting;
  Status status_;
};

}  // namespace rocegw::inprocess
