// SPDX-License-Identifier: Apache-2.0
// Finds the C library's own dlsym and dlvsym in its symbol table: this library exports functions of
// these names and so cannot look them up by name. Any thread.
#pragma once

namespace rocegw::client {

using DlsymFunction = void* (*)(void* handle, const char* name);
using DlvsymFunction = void* (*)(void* handle, const char* name, const char* version);

// Never nullptr: without them nothing in the process could have been loaded; otherwise aborts with
// a line.
DlsymFunction LibcDlsym();
DlvsymFunction LibcDlvsym();

// dlopen(3). An import would bind this library to the glibc release that moved it.
void* OpenLibrary(const char* file, int flags);

}  // namespace rocegw::client
