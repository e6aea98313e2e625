// SPDX-License-Identifier: Apache-2.0
// Mounted file system in the memory of donors: session, files, threads of FUSE, metrics page; made
// and undone in their order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/program/files_metrics.h"
#include "gateway/far/program/fuse_loop.h"
#include "gateway/far/program/remote_session.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/process/readiness.h"

namespace rocegw::far {

struct FilesArguments : SessionArguments {
  std::string directory;  // mount point
  bool allow_other = false;
  bool write_back = false;
  std::string names;  // with `keep`: file of the names; empty: beside the disk copy
};

class RemoteFiles {
 public:
  RemoteFiles();
  ~RemoteFiles();

  // Connects to the donors, mounts and serves. When somebody unmounts the file system, the process
  // gets SIGTERM. `signals` and ECANCELED as of OpenSession.
  Status Start(FilesArguments& arguments, int signals);
  // Unmounts, waits for transfers and returns the leases. Does nothing when not started.
  void Stop();

 private:
  std::string disk_copy_;  // removed at the end: it is of no use without the names
  std::unique_ptr<Session> session_;
  std::unique_ptr<Space> space_;
  std::unique_ptr<FileServer> server_;
  std::unique_ptr<FuseLoop> loop_;
  std::unique_ptr<FilesMetrics> metrics_;
  process::Readiness readiness_;
  std::unique_ptr<process::MetricsServer> page_;
  std::thread serving_;
};

}  // namespace rocegw::far
