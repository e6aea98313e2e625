// SPDX-License-Identifier: Apache-2.0
// Descriptor that a program passes with a request. Whatever a descriptor is, a process that has it
// must close it before it ends, and the close of a FUSE file waits for the file's server, which no
// signal interrupts. So the daemon itself receives only descriptors of the kinds below, whose close
// does not wait, except where a kind says so; descriptor_receiver.h receives and judges what comes.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::session {

enum class PassedKind : uint8_t {
  kProcessMemory,  // /proc/PID/mem, open for reading and writing
  kEventChannel,   // the program's end of an event channel; nothing if it is another descriptor
  kDmaBuf,         // a dma-buf
  // Memory that a driver of GPUs exported: a file of NVIDIA's driver, a dma-buf, or a memfd.
  kDeviceMemory,
  // Any file, as a name: the daemon gets it with O_PATH, and its inode. The last close of a file
  // may end its file system, which may take any time.
  kFile,
  kNone,  // nothing is wanted
};

struct WantedDescriptor {
  PassedKind kind = PassedKind::kFile;
  uint64_t cookie = 0;  // kEventChannel: SO_COOKIE of the program's end
};

struct PassedDescriptor {
  bool received = false;  // the message was taken from the socket
  bool costly = false;    // a process of the receiver has ended for it
  Status status;          // errors: the message had no descriptor of the kind, or more than one
  UniqueFd fd;
  uint64_t device = 0;  // kFile
  uint64_t inode = 0;   // kFile
};

struct ReceivedDescriptor {
  PassedDescriptor passed;
  std::vector<UniqueFd> others;  // the rest of the message; closing it may block
};

// Receives the next message of the socket, without its bytes, and judges its descriptor. May block.
ReceivedDescriptor ReceiveAndJudge(int socket, const WantedDescriptor& wanted);

}  // namespace rocegw::session
