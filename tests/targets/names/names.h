/* names: the declarations that its files share. */
#pragma once

int other_file(int n);
