/* A stub. */
#pragma once
unsigned short random_rand(void);
