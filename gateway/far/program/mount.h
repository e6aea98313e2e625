// SPDX-License-Identifier: Apache-2.0
// rocegw-memory mount: a file system in the memory of other hosts, until it is unmounted or the
// program is asked to stop.
#pragma once

#include "gateway/far/program/remote_files.h"

namespace rocegw::far {

// Returns the exit status.
int Mount(FilesArguments arguments);

}  // namespace rocegw::far
