// SPDX-License-Identifier: Apache-2.0
// XDP program of one interface with its maps. The program is attached by a link whose descriptor
// this process holds, so the kernel detaches the program when the process ends, however it ends.
// Owned by the control thread; SetAddresses may be called by one other thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

class XdpProgram {
 public:
  static constexpr size_t kMaxAddresses = 1024;

  // Loads the program for frames to this UDP port; no address is own yet.
  static StatusOr<XdpProgram> Load(uint16_t udp_port);

  // Attaches the program: in the driver if the interface's driver can run it, else in the kernel's
  // generic path, which is slower. Errors name a remedy.
  Status Attach(const std::string& interface, unsigned interface_index);
  bool in_driver() const { return in_driver_; }

  // Gives the frames of a receive queue to an AF_XDP socket.
  Status AddSocket(uint32_t receive_queue, int socket);
  // Replaces the own addresses. Addresses beyond kMaxAddresses are not served.
  void SetAddresses(std::span<const wire::Gid> addresses);

  int fd() const { return program_.get(); }

 private:
  UniqueFd sockets_;
  UniqueFd addresses_;
  UniqueFd program_;
  UniqueFd link_;
  bool in_driver_ = false;
  std::vector<wire::Gid> own_;  // the content of addresses_
};

}  // namespace rocegw::port
